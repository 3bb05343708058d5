// Elements of the page.

export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

export function create<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function bytes(count: number): string {
  if (count < 1e4) return `${count}\u00a0bytes`;
  return count < 1e6 ? `${(count / 1e3).toFixed(0)}\u00a0kB` : `${(count / 1e6).toFixed(1)}\u00a0MB`;
}

export function seconds(time: number): string {
  return `${time.toFixed(time < 9.95 ? 1 : 0)}\u00a0s`;
}

/** Lets the browser save a file. */
export function save(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = create("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** An error, as a sentence. */
export function sentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}
