// The files that workers need, each loaded once: the module, and the models.

const models = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
let compiled: Promise<WebAssembly.Module> | undefined;

async function load(name: string): Promise<Response> {
  const response = await fetch(name);
  if (!response.ok || !response.body) throw new Error("part of this page cannot be loaded: reload it");
  return response;
}

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

/** A model file; they are compressed already, since some servers compress nothing. */
export function model(name: string): Promise<Uint8Array<ArrayBuffer>> {
  let file = models.get(name);
  if (!file) {
    file = load(`${name}.gz`).then(async (response) => {
      const parts = response.body!.pipeThrough(new DecompressionStream("gzip"));
      return together(new Uint8Array(await new Response(parts).arrayBuffer()));
    });
    file.catch(() => models.delete(name));
    models.set(name, file);
  }
  return file;
}

/** The models that a picture may need. */
export function needed(model: string, channels: number): string[] {
  if (model === "tv") return [];
  if (channels === 1) return [model === "small" ? "grey-small" : "grey-best"];
  // Which of the two is better is found in the picture.
  return model === "best" ? ["colour-best", "colour-photo"] : [`colour-${model}`];
}

/** The module, unpacked and compiled by a worker of its own. */
export function module(): Promise<WebAssembly.Module> {
  compiled ??= new Promise((resolve, reject) => {
    const worker = new Worker("module.js");
    worker.addEventListener("message", (event: MessageEvent<WebAssembly.Module>) => {
      worker.terminate();
      resolve(event.data);
    });
    worker.addEventListener("error", () => reject(new Error("this browser is too old for this page")));
    const packed = load("proxlift.wasm.lzma").then((response) => response.arrayBuffer());
    packed.then((bytes) => worker.postMessage(new Uint8Array(bytes), [bytes]), reject);
  });
  return compiled;
}
