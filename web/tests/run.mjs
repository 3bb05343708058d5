// The page in a real browser, beside the program: `node tests/run.mjs [NAME]`, after `./build`.
// PROXLIFT names the program; screenshots go to web/target/screenshots.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { unzipSync } from "fflate";
import { Visitor, start } from "./browser.mjs";
import { png, scene, tiff } from "./pictures.mjs";
import { serve } from "./server.mjs";

const here = new URL(".", import.meta.url).pathname;
const program = process.env.PROXLIFT ?? join(here, "../../target/release/proxlift");
const shots = join(here, "../target/screenshots");
mkdirSync(shots, { recursive: true });

/** What the program makes of a file. */
function native(name, content, flags = []) {
  const folder = mkdtempSync(join(tmpdir(), "proxlift-native-"));
  writeFileSync(join(folder, name), content);
  execFileSync(program, ["denoise", join(folder, name), "--quiet", ...flags]);
  return readFileSync(join(folder, name.replace(".", "-denoised.")));
}

const grey16 = png(600, 420, 1, 16, scene(600, 420, 1, 0.08));
const colour8 = png(320, 240, 3, 8, scene(320, 240, 3, 0.1, 3));
const floats = tiff(300, 200, 3, [scene(300, 200, 3, 0.06, 5)]);
const stack = tiff(160, 120, 1, [scene(160, 120, 1, 0.05, 7), scene(160, 120, 1, 0.12, 8)]);
const damaged = grey16.subarray(0, 5000);

async function accessible(visitor, what) {
  await visitor.page.evaluate(readFileSync(join(here, "../node_modules/axe-core/axe.min.js"), "utf8"));
  const found = await visitor.page.evaluate(async () => (await axe.run()).violations);
  const told = found.map((v) => `${v.id}: ${v.help} (${v.nodes.map((n) => n.target).join("; ")})`);
  assert.deepEqual(told, [], what);
}

const tests = {
  "a visit takes at most 1.5 MB, whatever the picture"() {
    const dist = join(here, "../dist/");
    const size = (file) => {
      const content = readFileSync(dist + file);
      return /lzma$/.test(file) ? content.length : gzipSync(content, { level: 9 }).length;
    };
    const total = (files) => files.reduce((sum, file) => sum + size(file), 0);
    // A browser takes one of the two modules.
    const other = size("plain.wasm.lzma") < size("fused.wasm.lzma") ? "plain.wasm.lzma" : "fused.wasm.lzma";
    const files = readdirSync(dist).filter((file) => file !== other);
    const rest = files.filter((file) => !/^(grey|colour)-/.test(file));
    for (const kind of ["grey-best", "colour-(best|photo)"]) {
      const bytes = total([...rest, ...files.filter((file) => new RegExp(`^${kind}`).test(file))]);
      console.log(`  ${bytes} bytes with ${kind}`);
      assert.ok(bytes <= 1.5e6);
    }
    console.log(`  ${total(files)} bytes with all models`);
    assert.ok(total(files) <= 1.5e6);
  },

  async "the sample picture becomes clean"({ come }) {
    const visitor = await come();
    await visitor.page.screenshot({ path: join(shots, "welcome.png") });
    await accessible(visitor, "welcome");
    await visitor.page.click("#sample");
    await visitor.message(/^Done in/);
    await visitor.page.waitForFunction(() => /PSNR/.test(document.getElementById("score").textContent));
    const [before, after] = (await visitor.text("#score")).match(/[\d.]+(?= dB)/g).map(Number);
    console.log(`  ${before} dB before, ${after} dB after`);
    assert.ok(after > before + 8);
    assert.match(await visitor.text("#noise"), /Even noise, level 2\d\.\d\/255/);
    await accessible(visitor, "denoised");
    await visitor.page.screenshot({ path: join(shots, "sample.png") });
    return visitor;
  },

  async "a 16-bit PNG has the bytes of the program's result"({ come }) {
    const visitor = await come();
    await visitor.give([["discs.png", grey16]]);
    await visitor.message(/^Done in/);
    const [name, content] = await visitor.save("#save");
    assert.equal(name, "discs-denoised.png");
    assert.ok(content.equals(native("discs.png", grey16)), "the bytes differ");
    return visitor;
  },

  async "a browser without fused products has the bytes of the program with SSE2"({ come }) {
    const visitor = await come({ plain: true });
    await visitor.give([["discs.png", grey16]]);
    await visitor.message(/^Done in/);
    const [, content] = await visitor.save("#save");
    assert.ok(content.equals(native("discs.png", grey16, ["--simd", "sse2"])), "the bytes differ");
    assert.ok(!content.equals(native("discs.png", grey16)), "both modules are the same");
    return visitor;
  },

  async "a float TIFF, a stack and a pasted picture do so with other settings"({ come }) {
    const visitor = await come();
    await visitor.give([["floats.tif", floats]]);
    await visitor.message(/^Done in/);
    await visitor.set("#model", "small");
    await visitor.set("#strength", "1.5");
    await visitor.message(/^Done in/);
    const [, content] = await visitor.save("#save");
    assert.ok(content.equals(native("floats.tif", floats, ["--model", "small", "--strength", "1.5"])), "floats");
    await visitor.set("#strength", "1");
    await visitor.give([["stack.tif", stack]]);
    await visitor.page.waitForFunction(() => /Page 1 of 2/.test(document.getElementById("page").textContent));
    const [, pages] = await visitor.save("#save");
    assert.ok(pages.equals(native("stack.tif", stack, ["--model", "small"])), "the stack");
    await visitor.set("#model", "tv");
    // At once: what is still being opened is waited for.
    await visitor.give([["colour.png", colour8]], "paste");
    const [, varied] = await visitor.save("#save");
    assert.ok(varied.equals(native("colour.png", colour8, ["--method", "tv"])), "total variation");
    return visitor;
  },

  async "a bad file among good ones is told in a sentence, and the zip holds the others"({ come }) {
    const visitor = await come();
    const text = Buffer.from("this is no picture");
    await visitor.give([["a.png", colour8], ["broken.png", damaged], ["notes.txt", text], ["a.png", colour8], ["discs.png", grey16]]);
    const [name, content] = await visitor.save("#all");
    assert.equal(name, "denoised.zip");
    const files = unzipSync(content);
    assert.deepEqual(Object.keys(files), ["a-denoised.png", "a-denoised (2).png", "discs-denoised.png"]);
    assert.ok(Buffer.from(files["discs-denoised.png"]).equals(native("discs.png", grey16)));
    const states = await visitor.page.$$eval("#list .state", (all) => all.map((state) => state.textContent));
    console.log(`  ${states[1]} ${states[2]}`);
    assert.match(states[1], /^The file is truncated|damaged/);
    assert.match(states[2], /not a PNG, JPEG/);
    await visitor.message(/3 pictures in denoised.zip.*2 could not be used/);
    await accessible(visitor, "a list with bad files");
    await visitor.page.screenshot({ path: join(shots, "list.png") });
    return visitor;
  },

  async "a clean picture is compared with, and a bad file leaves nothing of another behind"({ come }) {
    const visitor = await come();
    await visitor.set("#model", "small");
    const clean = png(320, 240, 3, 8, scene(320, 240, 3, 0, 3));
    await visitor.give([["a.png", colour8], ["a-clean.png", clean], ["broken.png", damaged]]);
    await visitor.message(/^Done in/);
    const psnr = /PSNR ([\d.]+) dB before, ([\d.]+) dB after/;
    await visitor.page.waitForFunction(() => /PSNR/.test(document.getElementById("score").textContent));
    const [, before, after] = (await visitor.text("#score")).match(psnr).map(Number);
    assert.ok(before > 19.5 && before < 21.5 && after > before + 8, `${before} and ${after} dB`);
    assert.equal((await visitor.page.$$("#plot svg")).length, 1);
    await (await visitor.page.$$("#list .item"))[1].click();
    await visitor.message(/^The file is truncated/);
    assert.equal(await visitor.text("#title"), "broken.png");
    assert.equal((await visitor.page.$$("#plot svg")).length, 0);
    assert.equal(await visitor.text("#noise"), "");
    await accessible(visitor, "a bad file");
    await visitor.page.screenshot({ path: join(shots, "bad.png") });
    await visitor.page.click("#tab-how");
    assert.equal(await visitor.text("#how-message"), "Open a picture on the first tab.");
    return visitor;
  },

  async "work is cancelled at once, and begun again"({ come }) {
    const visitor = await come();
    const large = png(2400, 1800, 1, 8, scene(2400, 1800, 1, 0.1, 9));
    const longest = await visitor.longest(async () => {
      await visitor.choose([["large.png", large]]);
      await visitor.message(/^[1-9]\d* of \d+ parts/);
      await visitor.page.screenshot({ path: join(shots, "progress.png") });
      const said = await visitor.page.evaluate(() => {
        document.getElementById("cancel").click();
        return document.getElementById("message").textContent;
      });
      assert.equal(said, "Cancelled.");
      await visitor.set("#model", "tv");
      await visitor.message(/^Denoising/);
      await visitor.page.keyboard.press("Escape");
      await visitor.message(/^Cancelled/);
      await visitor.set("#model", "small");
      await visitor.message(/^Done in/);
    });
    console.log(`  the longest task of the page took ${longest.toFixed(0)} ms`);
    assert.ok(longest <= 50, "the page is stuck");
    return visitor;
  },

  async "divider, keys, zoom and the kept key work"({ come }) {
    const visitor = await come();
    const { page } = visitor;
    await visitor.give([["colour.png", colour8]]);
    await visitor.message(/^Done in/);
    const differs = (other) => page.waitForFunction((other) => document.getElementById("view").toDataURL() !== other, {}, other);
    const becomes = (other) => page.waitForFunction((other) => document.getElementById("view").toDataURL() === other, {}, other);
    const pixels = () => page.$eval("#view", (canvas) => canvas.toDataURL());
    // Drawn, and not going to be drawn again.
    const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    await page.waitForFunction(() => !document.getElementById("frame").classList.contains("empty"));
    await settled();
    const half = await pixels();
    await page.focus("#divider");
    await page.keyboard.press("Home");
    assert.equal(await page.$eval("#divider", (divider) => divider.ariaValueNow), "0");
    await differs(half);
    await settled();
    const after = await pixels();
    await page.keyboard.down("b");
    await differs(after);
    const before = await pixels();
    await page.keyboard.up("b");
    await becomes(after);
    assert.equal(new Set([half, after, before]).size, 3);
    await page.keyboard.press("1");
    assert.equal(await visitor.text("#zoom"), "100 %");
    await page.keyboard.press("+");
    assert.equal(await visitor.text("#zoom"), "125 %");
    return visitor;
  },

  async "the second tab opens the layers"({ come }) {
    const visitor = await come();
    await visitor.page.click("#tab-how");
    await visitor.page.waitForFunction(() => document.querySelectorAll("#duals li").length > 4);
    const last = await visitor.page.$eval("#layer", (slider) => slider.max);
    await visitor.set("#layer", String(Math.floor(last / 2)));
    await visitor.page.waitForFunction(() => document.querySelectorAll("#duals svg").length > 4);
    await accessible(visitor, "how it works");
    await visitor.page.screenshot({ path: join(shots, "how.png"), fullPage: true });
    return visitor;
  },

  async "it works without a network after the first visit"({ come }) {
    const { server, address } = await serve(join(here, "../dist"));
    const visitor = await come({ address });
    await visitor.page.evaluate(() => navigator.serviceWorker.ready);
    await visitor.page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    const kept = await visitor.page.evaluate(async () => {
      const cache = await caches.open((await caches.keys())[0]);
      return (await cache.keys()).map((request) => request.url).filter((url) => /wasm/.test(url)).length;
    });
    assert.equal(kept, 1, "one of the modules is enough");
    server.close();
    server.closeAllConnections();
    await assert.rejects(fetch(address));
    await visitor.page.reload();
    await visitor.set("#model", "small");
    await visitor.page.click("#sample");
    await visitor.message(/^Done in/);
    return visitor;
  },

  async "a phone and the dark are served too"({ come }) {
    const phone = { width: 390, height: 844, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };
    const visitor = await come({ size: phone, dark: true });
    await visitor.page.screenshot({ path: join(shots, "phone-welcome.png") });
    await visitor.give([["colour.png", colour8]]);
    await visitor.message(/^Done in/);
    const across = () => visitor.page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok((await across()) <= 390, "it scrolls sideways");
    await accessible(visitor, "a phone in the dark");
    await visitor.page.screenshot({ path: join(shots, "phone.png") });
    await visitor.page.click("#tab-how");
    await visitor.page.waitForFunction(() => document.querySelectorAll("#duals li").length > 4);
    assert.ok((await across()) <= 390, "the second tab scrolls sideways");
    await visitor.page.screenshot({ path: join(shots, "phone-how.png") });
    return visitor;
  },
};

const chosen = Object.entries(tests).filter(([name]) => name.includes(process.argv[2] ?? ""));
const { browser, server, address } = await start();
let failed = 0;
for (const [name, test] of chosen) {
  const visitors = [];
  const come = async (options) => {
    const visitor = await Visitor.come(browser, options?.address ?? address, options);
    visitors.push(visitor);
    return visitor;
  };
  try {
    console.log(name);
    await test({ come });
    for (const visitor of visitors) assert.deepEqual(visitor.errors, [], "errors in the page");
  } catch (error) {
    failed += 1;
    console.log(`  FAILED: ${error.message}`);
    await visitors.at(-1)?.page.screenshot({ path: join(shots, "failed.png") }).catch(() => {});
    if (visitors.length) console.log(`  ${visitors.at(-1).errors.join("\n  ")}`);
  }
  for (const visitor of visitors) await visitor.leave();
}
await browser.close();
server.close();
console.log(failed ? `${failed} of ${chosen.length} failed` : `all ${chosen.length} passed`);
process.exit(failed ? 1 : 0);
