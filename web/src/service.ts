// Keeps the page for use without a network: all its files, under the name of this build.

declare const VERSION: string;
declare const FILES: string[];
const scope = globalThis as unknown as ServiceWorkerGlobalScope;

scope.addEventListener("install", (event) => {
  const kept = caches.open(VERSION).then((cache) => cache.addAll(FILES.map((file) => new Request(file, { cache: "no-cache" }))));
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
