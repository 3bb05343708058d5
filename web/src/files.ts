// The files that workers need, each loaded once: the module, and the models. They are compressed more than servers do.

import { fused } from "./fused";

/** Tests ask for the module without fused products. */
const plain = new URLSearchParams(location.search).has("plain");

const kept = new Map<string, Promise<unknown>>();

async function load(name: string, model: boolean): Promise<unknown> {
  const response = await fetch(`${name}.lzma`);
  if (!response.ok) throw new Error("part of this page cannot be loaded: reload it");
  const packed = new Uint8Array(await response.arrayBuffer());
  const worker = new Worker("unpacker.js");
  try {
    return await new Promise((resolve, reject) => {
      worker.addEventListener("message", (event) => resolve(event.data));
      worker.addEventListener("error", () => reject(new Error("this browser is too old for this page")));
      worker.postMessage({ packed, model }, [packed.buffer]);
    });
  } finally {
    worker.terminate();
  }
}

function once<T>(name: string, model: boolean): Promise<T> {
  let file = kept.get(name);
  if (!file) {
    file = load(name, model);
    file.catch(() => kept.delete(name));
    kept.set(name, file);
  }
  return file as Promise<T>;
}

/** The module, compiled. */
export function module(): Promise<WebAssembly.Module> {
  return once(fused() && !plain ? "fused.wasm" : "plain.wasm", false);
}

/** A model file. */
export function model(name: string): Promise<Uint8Array<ArrayBuffer>> {
  return once(name, true);
}

/** The models that a picture may need. */
export function needed(model: string, channels: number): string[] {
  if (model === "tv") return [];
  if (channels === 1) return [model === "small" ? "grey-small" : "grey-best"];
  // Which of the two is better is found in the picture.
  return model === "best" ? ["colour-best", "colour-photo"] : [`colour-${model}`];
}
