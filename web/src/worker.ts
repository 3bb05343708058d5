// A worker with an instance of its own: holds a document, denoises tiles, or opens the network.

import { Document, Layers, Worker as Tiles, initSync, provide, sample } from "../target/plain/proxlift_wasm.js";

let page: Document | undefined;
let layers: Layers | undefined;
let tiles: Tiles | undefined;

function document_(): Document {
  if (!page) throw new Error("no picture is open");
  return page;
}

function opened(): Layers {
  if (!layers) throw new Error("no layers are open");
  return layers;
}

const calls: Record<string, (...args: any[]) => unknown> = {
  start: (module: WebAssembly.Module) => void initSync({ module }),
  provide: (name: string, bytes: Uint8Array) => provide(name, bytes),
  sample: (height: number, width: number, sigma: number) => sample(height, width, sigma),
  open: (name: string, bytes: Uint8Array) => {
    page = new Document(name, bytes);
    return JSON.parse(page.describe());
  },
  openPage: (index: number) => {
    document_().openPage(index);
    return JSON.parse(document_().describe());
  },
  settle: (options: object) => JSON.parse(document_().settle(JSON.stringify(options))),
  seen: (index: number) => document_().seen(index),
  put: (index: number, pixels: Float32Array) => document_().put(index, pixels),
  finish: () => document_().finish(),
  view: (result: boolean, t: number, l: number, h: number, w: number, oh: number, ow: number) =>
    document_().view(result, t, l, h, w, oh, ow),
  crop: (t: number, l: number, h: number, w: number) => document_().crop(t, l, h, w),
  compare: (name: string, bytes: Uint8Array) => document_().compare(name, bytes),
  psnr: () => [...document_().psnr()],
  encode: () => document_().encode(),
  tile: (request: object, seen: Float32Array) => (tiles ??= new Tiles()).tile(JSON.stringify(request), seen),
  layers: (request: object, part: Float32Array) => {
    layers?.free();
    layers = undefined;
    layers = new Layers(JSON.stringify(request), part);
    return JSON.parse(layers.describe());
  },
  estimate: (k: number) => opened().estimate(k),
  duals: (k: number) => opened().duals(k),
  filters: (k: number) => opened().filters(k),
  activations: (k: number) => opened().activations(k),
};

addEventListener("message", (event: MessageEvent) => {
  const { id, call, args } = event.data;
  try {
    const value = calls[call]!(...args);
    const transfer = ArrayBuffer.isView(value) ? [value.buffer as ArrayBuffer] : [];
    postMessage({ id, value }, { transfer });
  } catch (error) {
    // A trap leaves the instance in no state to go on.
    const ended = error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
    postMessage({ id, error: error instanceof Error ? error.message : String(error), ended });
  }
});
