// Keeps the page for use without a network: all its files, under the name of this build.

import { fused } from "./fused";

declare const VERSION: string;
declare const FILES: string[];
const other = fused() ? "plain.wasm.lzma" : "fused.wasm.lzma";
const files = FILES.filter((file) => file !== other);
const scope = globalThis as unknown as ServiceWorkerGlobalScope;

scope.addEventListener("install", (event) => {
  const kept = caches.open(VERSION).then((cache) => cache.addAll(files.map((file) => new Request(file, { cache: "no-cache" }))));
  event.waitUntil(kept.then(() => scope.skipWaiting()));
});

scope.addEventListener("activate", (event) => {
  const old = caches.keys().then((names) => names.filter((name) => name.startsWith("proxlift-") && name !== VERSION));
  event.waitUntil(old.then((names) => Promise.all(names.map((name) => caches.delete(name)))).then(() => scope.clients.claim()));
});

scope.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== location.origin) return;
  const answer = caches.open(VERSION).then((cache) => cache.match(event.request, { ignoreSearch: true }));
  event.respondWith(answer.then((kept) => kept ?? fetch(event.request)));
});
