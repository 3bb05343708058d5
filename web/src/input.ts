// Keys, drops and pastes, wherever they happen on the page.

import { element } from "./dom";

function meant(event: KeyboardEvent): boolean {
  const elsewhere = event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLSelectElement;
  return !elsewhere && !element("denoise").hidden;
}

export function keys(actions: Record<string, () => unknown>): void {
  window.addEventListener("keydown", (event) => {
    if (meant(event)) actions[event.key]?.();
  });
}

/** Tells whether a key is held. */
export function holding(key: string, told: (held: boolean) => void): void {
  window.addEventListener("keydown", (event) => {
    if (meant(event) && event.key.toLowerCase() === key) told(true);
  });
  window.addEventListener("keyup", (event) => {
    if (event.key.toLowerCase() === key) told(false);
  });
}

export function drops(take: (files: FileList) => void): void {
  const veil = element("drop");
  window.addEventListener("dragover", (event) => {
    event.preventDefault();
    veil.hidden = false;
  });
  window.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) veil.hidden = true;
  });
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    veil.hidden = true;
    if (event.dataTransfer?.files.length) take(event.dataTransfer.files);
  });
  window.addEventListener("paste", (event) => {
    if (event.clipboardData?.files.length) take(event.clipboardData.files);
  });
}
