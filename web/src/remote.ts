// A worker whose functions are called and answer later.

import { model, module } from "./files";
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

export class Remote {
  private worker = new Worker("worker.js");
  private waiting = new Map<number, { resolve: (value: any) => void; reject: (error: Error) => void }>();
  private next = 0;
  private ready: Promise<void>;
  private given = new Map<string, Promise<void>>();
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
    await Promise.all(names.map((name) => this.give(name)));
  }

  private give(name: string): Promise<void> {
    let given = this.given.get(name);
    if (!given) {
      given = Promise.all([model(name), this.ready]).then(([bytes]) => this.send("provide", [name, bytes.slice()]));
      given.catch(() => this.given.delete(name));
      this.given.set(name, given);
    }
    return given;
  }

  get busy(): boolean {
    return this.waiting.size > 0;
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
