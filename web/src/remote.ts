// A worker whose functions are called and answer later.

import type { Info, LayersInfo, Options, Settled } from "./types";

interface Calls {
  start: [[WebAssembly.Module], void];
  sample: [[number, number, number], Uint8Array];
  open: [[string, Uint8Array], Info];
  openPage: [[number], Info];
  settle: [[Options], Settled];
  seen: [[number], Float32Array];
  put: [[number, Float32Array], void];
  finish: [[], void];
  view: [[boolean, number, number, number, number, number, number], Uint8Array];
  crop: [[number, number, number, number], Float32Array];
  compare: [[string, Uint8Array], void];
  psnr: [[], number[]];
  encode: [[], Uint8Array];
  tile: [[object, Float32Array], Float32Array];
  layers: [[object, Float32Array], LayersInfo];
  estimate: [[number], Uint8Array];
  duals: [[number], Uint8Array];
  filters: [[number], Uint8Array];
  activations: [[number], Float32Array];
}

/** What was asked of a worker that has ended since. */
export class Ended extends Error {}

const models = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();

/** A file of the page, which is compressed already: some servers compress nothing. */
async function load(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(name);
  if (!response.ok || !response.body) throw new Error("part of this page cannot be loaded: reload it");
  return new Uint8Array(await new Response(response.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

/** The models that a picture may need. */
export function needed(model: string, channels: number): string[] {
  if (model === "tv") return [];
  if (channels === 1) return [model === "small" ? "grey-small" : "grey-best"];
  // Which of the two is better is found in the picture.
  return model === "best" ? ["colour-best", "colour-photo"] : [`colour-${model}`];
}

let compiled: Promise<WebAssembly.Module> | undefined;

/** The module, fetched and compiled once for all workers. */
export function module(): Promise<WebAssembly.Module> {
  compiled ??= (async () => {
    const bytes = await load("proxlift.wasm.gz");
    return WebAssembly.compile(bytes);
  })();
  return compiled;
}

export class Remote {
  private worker = new Worker("worker.js");
  private waiting = new Map<number, { resolve: (value: any) => void; reject: (error: Error) => void }>();
  private next = 0;
  private ready: Promise<void>;
  private provided = new Set<string>();
  ended = false;

  constructor() {
    this.worker.addEventListener("message", (event) => {
      const { id, value, error, ended } = event.data;
      const call = this.waiting.get(id);
      this.waiting.delete(id);
      if (ended) {
        call?.reject(new Ended("the file is damaged, or needs more memory than this browser gives"));
        this.end();
      } else if (error !== undefined) call?.reject(new Error(error));
      else call?.resolve(value);
    });
    this.worker.addEventListener("error", () => this.end());
    this.ready = module().then((module) => this.send("start", [module]));
    this.ready.catch(() => {});
  }

  async call<K extends keyof Calls>(name: K, ...args: Calls[K][0]): Promise<Calls[K][1]> {
    await this.ready;
    return this.send(name, args);
  }

  /** Sees to it that the worker has these models. */
  async provide(names: string[]): Promise<void> {
    await this.ready;
    for (const name of names.filter((name) => !this.provided.has(name))) {
      this.provided.add(name);
      if (!models.has(name)) models.set(name, load(`${name}.gz`));
      const bytes = await models.get(name)!.catch((error) => {
        models.delete(name);
        throw error;
      });
      await this.send("provide", [name, bytes.slice()]);
    }
  }

  private send(call: string, args: unknown[]): Promise<any> {
    if (this.ended) return Promise.reject(new Ended("the work was ended"));
    return new Promise((resolve, reject) => {
      const id = this.next++;
      this.waiting.set(id, { resolve, reject });
      const transfer = args.filter((arg): arg is Uint8Array<ArrayBuffer> => ArrayBuffer.isView(arg));
      this.worker.postMessage({ id, call, args }, transfer.map((view) => view.buffer));
    });
  }

  /** Ends the worker, whatever it is doing. */
  end(): void {
    this.ended = true;
    this.worker.terminate();
    for (const call of this.waiting.values()) call.reject(new Ended("the work was ended"));
    this.waiting.clear();
  }
}
