// Bundles the page into dist: scripts, the module compressed, icons, and the list of all files for use without a network.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { deflateSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const dist = new URL("dist/", import.meta.url).pathname;
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
const options = { bundle: true, minify: true, format: "iife", target: "es2022", legalComments: "none", logLevel: "warning" };

/** Writes a file compressed by LZMA, a quarter smaller than by what browsers know; its header says how long it is. */
function pack(name, content, settings) {
  const lzma = execFileSync("xz", ["--format=lzma", `--lzma1=preset=9e,${settings}`], { input: content, maxBuffer: 1 << 28 });
  lzma.writeBigUInt64LE(BigInt(content.length), 5);
  writeFileSync(`${dist}${name}.lzma`, lzma);
}
for (const kind of ["plain", "fused"]) pack(`${kind}.wasm`, readFileSync(`target/${kind}/proxlift_wasm_bg.wasm`), "lc=4,pb=0");

/** A model whose numbers have their sign last, so that a byte is the exponent; with the first bytes of all, then the second. */
function apart(model) {
  const start = 8 + model.readUInt32LE(0);
  const numbers = Buffer.from(model.subarray(start));
  for (let i = 0; i < numbers.length; i += 4) {
    const bits = numbers.readUInt32LE(i);
    numbers.writeUInt32LE(((bits << 1) | (bits >>> 31)) >>> 0, i);
  }
  const bytes = [0, 1, 2, 3].map((byte) => numbers.filter((_, i) => i % 4 === byte));
  return Buffer.concat([model.subarray(0, start), ...bytes]);
}
const models = "../crates/proxlift/models/";
for (const file of readdirSync(models).filter((name) => /safetensors$/.test(name) && !/convex/.test(name))) {
  pack(file.replace(".safetensors", ""), apart(readFileSync(models + file)), "lc=0,pb=0");
}

// The module is compiled once by the page and handed to workers: they need not know where it is.
const define = { "import.meta.url": '""' };
await build({ ...options, define, entryPoints: ["src/main.ts", "src/worker.ts", "src/unpacker.ts"], outdir: dist });
await build({ ...options, entryPoints: ["src/style.css"], outdir: dist });
for (const file of ["index.html", "manifest.webmanifest"]) cpSync(`src/${file}`, dist + file);

/** Two halves of a disc on a ground: one with noise, one without. */
function icon(side) {
  const pixels = Buffer.alloc(side * (1 + 3 * side));
  let state = 7;
  const random = () => (state = (1103515245 * state + 12345) & 0x7fffffff) / 0x7fffffff;
  const grain = Array.from({ length: 24 * 24 }, random);
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const [u, v] = [(x + 0.5) / side, (y + 0.5) / side];
      const inside = Math.hypot(u - 0.5, v - 0.5) < 0.32;
      const noise = u < 0.5 ? 110 * (grain[Math.floor(24 * v) * 24 + Math.floor(24 * u)] - 0.5) : 0;
      const base = inside ? [244, 196, 72] : [31, 95, 191];
      const line = Math.abs(u - 0.5) < 0.012;
      base.forEach((value, c) => {
        pixels[y * (1 + 3 * side) + 1 + 3 * x + c] = line ? 255 : Math.min(255, Math.max(0, value + noise));
      });
    }
  }
  // Each row as its difference from the one above, which is mostly nothing.
  const row = 1 + 3 * side;
  for (let y = side - 1; y >= 0; y--) {
    if (y > 0) for (let i = 1; i < row; i++) pixels[y * row + i] -= pixels[(y - 1) * row + i];
    pixels[y * row] = 2;
  }
  const crcs = Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n;
  });
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const crc = ~body.reduce((crc, byte) => crcs[(crc ^ byte) & 255] ^ (crc >>> 8), -1) >>> 0;
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(crc);
    return Buffer.concat([length, body, check]);
  };
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0]);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  const parts = [chunk("IHDR", header), chunk("IDAT", deflateSync(pixels, { level: 9 })), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([signature, ...parts]);
}
for (const side of [192, 512]) writeFileSync(`${dist}icon-${side}.png`, icon(side));
const dots = Array.from({ length: 40 }, (_, i) => `<circle cx="${(i * 37) % 31}" cy="${(i * 53 + 7) % 64}" r="1.6"/>`);
writeFileSync(
  dist + "icon.svg",
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="12" fill="#1f5fbf"/>` +
    `<circle cx="32" cy="32" r="20" fill="#f4c448"/><g fill="#fff" opacity=".55">${dots.join("")}</g>` +
    `<path d="M32 0v64" stroke="#fff" stroke-width="2"/></svg>\n`,
);

const files = readdirSync(dist).sort();
const hash = createHash("sha256");
files.forEach((file) => hash.update(readFileSync(dist + file)));
const version = `proxlift-${hash.digest("hex").slice(0, 16)}`;
const named = { VERSION: JSON.stringify(version), FILES: JSON.stringify([".", ...files.filter((file) => file !== "index.html")]) };
await build({ ...options, define: named, entryPoints: ["src/service.ts"], outdir: dist });

for (const file of readdirSync(dist)) {
  const content = readFileSync(dist + file);
  console.log(file.padEnd(22), /lzma$/.test(file) ? content.length : gzipSync(content, { level: 9 }).length, "bytes compressed");
}
