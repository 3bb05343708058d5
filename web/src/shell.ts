// What is around the page: tabs, and dark or light.

import { element } from "./dom";

const TABS = ["denoise", "how"] as const;

export function tabs(opened: (name: string) => void): void {
  const open = (name: string) => {
    for (const other of TABS) {
      element(other).hidden = other !== name;
      element(`tab-${other}`).setAttribute("aria-selected", String(other === name));
      element(`tab-${other}`).tabIndex = other === name ? 0 : -1;
    }
    opened(name);
  };
  for (const name of TABS) {
    element(`tab-${name}`).addEventListener("click", () => open(name));
    element(`tab-${name}`).addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const other = name === "how" ? "denoise" : "how";
      open(other);
      element(`tab-${other}`).focus();
    });
  }
}

export function theme(): void {
  const root = document.documentElement;
  const kept = localStorage.getItem("theme");
  if (kept) root.dataset.theme = kept;
  element("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = root.dataset.theme ?? (dark ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });
}
