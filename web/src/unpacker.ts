// A worker that unpacks a file of the page: the module, which it compiles for all others, or a model.

import { unpack } from "./unpack";

/** A model file from its parts: what comes before its numbers, then the first bytes of all, the second, and so on; with the
 * sign of a number after the rest of it. */
function together(parts: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const start = 8 + new DataView(parts.buffer).getUint32(0, true);
  const count = (parts.length - start) / 4;
  const file = parts.slice();
  const numbers = new DataView(file.buffer, start);
  for (let i = 0; i < count; i++) {
    const [a, b, c, d] = [0, 1, 2, 3].map((byte) => parts[start + byte * count + i]!);
    const bits = a! | (b! << 8) | (c! << 16) | (d! << 24);
    numbers.setUint32(4 * i, (bits >>> 1) | (bits << 31), true);
  }
  return file;
}

addEventListener("message", async (event: MessageEvent<{ packed: Uint8Array; model: boolean }>) => {
  const { packed, model } = event.data;
  const content = unpack(packed);
  postMessage(model ? together(content) : await WebAssembly.compile(content));
});
