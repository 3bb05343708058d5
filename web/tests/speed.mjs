// The speed of the page beside one thread of the program, two workers beside one, and the memory of a large photograph:
// `node tests/speed.mjs [speed|memory|visit]`, after `./build`. PROXLIFT names the program.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Visitor, start } from "./browser.mjs";
import { png, scene } from "./pictures.mjs";

const here = new URL(".", import.meta.url).pathname;
const program = process.env.PROXLIFT ?? join(here, "../../target/release/proxlift");
const ROUNDS = 3;
const least = (times) => Math.min(...times);

/** Seconds that the program takes with one thread. */
function native(file, model, flags = []) {
  const output = join(tmpdir(), `proxlift-speed-${process.pid}.png`);
  const all = ["denoise", file, "-o", output, "--overwrite", "--json", "--threads", "1", "--sigma", "0.1", "--model", model, ...flags];
  return JSON.parse(execFileSync(program, all, { encoding: "utf8" })).seconds;
}

/** Seconds for each time that the picture is denoised again. */
async function again(visitor, round) {
  await visitor.page.evaluate((strength) => {
    const slider = document.getElementById("strength");
    document.getElementById("message").textContent = "";
    slider.value = strength;
    slider.dispatchEvent(new Event("input"));
  }, round % 2 ? "1.05" : "1");
  await visitor.message(/^Done in/);
  return Number(await visitor.page.$eval("#message", (message) => message.dataset.seconds));
}

async function speed(browser, address) {
  const size = [2048, 1536];
  const file = join(mkdtempSync(join(tmpdir(), "proxlift-speed-")), "picture.png");
  writeFileSync(file, png(...size, 1, 8, scene(...size, 1, 0.1)));
  const content = readFileSync(file);
  for (const model of ["small", "best"]) {
    const visitors = {};
    for (const workers of [1, 2]) {
      visitors[workers] = await Visitor.come(browser, address, { workers });
      await visitors[workers].set("#model", model);
      await visitors[workers].give([["picture.png", content]]);
      await visitors[workers].message(/^Done in/);
    }
    const times = { native: [], sse2: [], 1: [], 2: [] };
    for (let round = 1; round <= ROUNDS; round++) {
      times.native.push(native(file, model));
      times.sse2.push(native(file, model, ["--simd", "sse2"]));
      for (const workers of [1, 2]) times[workers].push(await again(visitors[workers], round));
    }
    const best = Object.fromEntries(Object.entries(times).map(([name, all]) => [name, least(all)]));
    console.log(
      `${model}, ${size.join(" x ")} grey: program, one thread ${best.native.toFixed(2)} s (SSE2 ${best.sse2.toFixed(2)} s); ` +
        `one worker ${best[1].toFixed(2)} s, ${(best.native / best[1]).toFixed(2)} times its speed; ` +
        `two workers ${best[2].toFixed(2)} s, ${(best[1] / best[2]).toFixed(2)} times one`,
    );
    for (const visitor of Object.values(visitors)) await visitor.leave();
  }
}

/** The most memory that a process of the browser's pages has had, in bytes. */
function peak(browser) {
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      if (!command.includes("--type=renderer") || Number(pid) < browser.process().pid) return [];
      return [1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1])];
    } catch {
      return [];
    }
  });
  return Math.max(...children);
}

/** A JPEG of 24 megapixels, made in a tab of its own. */
async function photograph(browser, address) {
  const visitor = await Visitor.come(browser, address);
  const text = await visitor.page.evaluate(async () => {
    const [width, height] = [6000, 4000];
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d");
    for (let top = 0; top < height; top += 100) {
      const image = context.createImageData(width, 100);
      for (let i = 0; i < image.data.length; i++) {
        const x = (i >> 2) % width;
        image.data[i] = i % 4 === 3 ? 255 : 60 + (120 * x) / width + 60 * (Math.random() + Math.random() - 1);
      }
      context.putImageData(image, 0, top);
    }
    const blob = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.92 });
    const reader = new FileReader();
    reader.readAsDataURL(blob);
    await new Promise((resolve) => (reader.onload = resolve));
    return reader.result.slice(reader.result.indexOf(",") + 1);
  });
  await visitor.leave();
  return Buffer.from(text, "base64");
}

async function memory(browser, address) {
  const content = await photograph(browser, address);
  const visitor = await Visitor.come(browser, address);
  const model = process.env.MODEL ?? "small";
  await visitor.set("#model", model);
  let done, name, result;
  const longest = await visitor.longest(async () => {
    await visitor.choose([["photograph.jpg", content]]);
    done = await visitor.message(/^Done in/, 3_000_000);
    [name, result] = await visitor.save("#save");
  });
  console.log(
    `${model}, 24 megapixels in colour (${content.length} bytes): ${done} ${name}, ${result.length} bytes; ` +
      `at most ${(peak(browser) / 1e9).toFixed(2)} GB in the tab, ${longest.toFixed(0)} ms for the longest task of the page`,
  );
  await visitor.leave();
}

/** From the address to a denoised picture. */
async function visit(browser, address) {
  const times = [];
  for (let round = 0; round < ROUNDS; round++) {
    const visitor = await Visitor.come(browser, address);
    await visitor.choose([["discs.png", png(600, 420, 1, 8, scene(600, 420, 1, 0.1))]]);
    await visitor.message(/^Done in/);
    times.push((await visitor.page.evaluate(() => performance.now())) / 1000);
    await visitor.leave();
  }
  console.log(`from the address to a denoised picture of 600 x 420 pixels: ${least(times).toFixed(2)} s`);
}

const { browser, server, address } = await start();
const all = { speed, memory, visit };
for (const [name, measure] of Object.entries(all)) {
  if (!process.argv[2] || process.argv[2] === name) await measure(browser, address);
}
await browser.close();
server.close();
