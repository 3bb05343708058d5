// Noisy pictures for tests, written without the library: PNG and TIFF, grey and colour, of several depths.

import { crc32, deflateSync } from "node:zlib";

/** Numbers that look random, the same every time. */
function random(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Discs and a slope with noise of the level `sigma`, pixel after pixel, about between 0 and 1. */
export function scene(width, height, channels, sigma, seed = 1) {
  const next = random(seed);
  const discs = Array.from({ length: 24 }, () => [next() * width, next() * height, (0.05 + 0.15 * next()) * width, next(), next(), next()]);
  const values = new Float32Array(width * height * channels);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const disc = discs.findLast(([cx, cy, r]) => (x - cx) ** 2 + (y - cy) ** 2 < r * r);
      for (let c = 0; c < channels; c++, i++) {
        const clean = disc ? 0.1 + 0.8 * disc[3 + c] : 0.3 + (0.4 * x) / width;
        const gaussian = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
        values[i] = clean + sigma * gaussian;
      }
    }
  }
  return values;
}

/** A PNG of 8 or 16 bits, with a text that has to stay. */
export function png(width, height, channels, bits, values) {
  const [bytes, white] = [bits / 8, 2 ** bits - 1];
  const row = 1 + width * channels * bytes;
  const raw = Buffer.alloc(height * row);
  values.forEach((value, i) => {
    const sample = Math.min(white, Math.max(0, Math.round(value * white)));
    raw.writeUIntBE(sample, Math.floor(i / (width * channels)) * row + 1 + (i % (width * channels)) * bytes, bytes);
  });
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const ends = Buffer.alloc(8);
    ends.writeUInt32BE(data.length, 0);
    ends.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bits, channels === 3 ? 2 : 0], 8);
  const text = chunk("tEXt", Buffer.from("Description\0two discs and a slope"));
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  return Buffer.concat([signature, chunk("IHDR", header), text, chunk("IDAT", deflateSync(raw)), chunk("IEND", Buffer.alloc(0))]);
}

/** A TIFF of 32-bit floats, not compressed, one page after the other. */
export function tiff(width, height, channels, pages) {
  const parts = [Buffer.from([0x49, 0x49, 42, 0, 0, 0, 0, 0])];
  let [length, link] = [8, 4];
  const whole = () => Buffer.concat(parts);
  const links = [];
  for (const values of pages) {
    const data = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    const bits = Buffer.alloc(12);
    for (let c = 0; c < channels; c++) [bits.writeUInt16LE(32, 2 * c), bits.writeUInt16LE(3, 6 + 2 * c)];
    const [at, shorts] = [length, length + data.length];
    const entries = [
      [256, 4, 1, width],
      [257, 4, 1, height],
      [258, 3, channels, channels > 1 ? shorts : 32],
      [259, 3, 1, 1],
      [262, 3, 1, channels > 1 ? 2 : 1],
      [273, 4, 1, at],
      [277, 3, 1, channels],
      [278, 4, 1, height],
      [279, 4, 1, data.length],
      [284, 3, 1, 1],
      [339, 3, channels, channels > 1 ? shorts + 6 : 3],
    ];
    const directory = Buffer.alloc(2 + 12 * entries.length + 4);
    directory.writeUInt16LE(entries.length, 0);
    entries.forEach(([tag, type, count, value], i) => {
      directory.writeUInt16LE(tag, 2 + 12 * i);
      directory.writeUInt16LE(type, 4 + 12 * i);
      directory.writeUInt32LE(count, 6 + 12 * i);
      directory.writeUInt32LE(value, 10 + 12 * i);
    });
    links.push([link, shorts + 12]);
    link = shorts + 12 + directory.length - 4;
    parts.push(data, bits, directory);
    length = link + 4;
  }
  const file = whole();
  links.forEach(([place, offset]) => file.writeUInt32LE(offset, place));
  return file;
}
