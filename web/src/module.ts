// A worker that unpacks and compiles the module for all others.

import { unpack } from "./unpack";

addEventListener("message", async (event: MessageEvent<Uint8Array>) => {
  postMessage(await WebAssembly.compile(unpack(event.data)));
});
