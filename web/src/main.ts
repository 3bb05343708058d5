// The page: what its buttons, keys and drops do.

import { Desk } from "./desk";
import { element, sentence } from "./dom";
import { How } from "./how";
import { drops, holding, keys } from "./input";
import { Pool } from "./pool";
import { samples } from "./samples";
import { saveAll, saveOpen } from "./saving";
import { tabs, theme } from "./shell";
import { Viewer } from "./viewer";

const asked = Number(new URLSearchParams(location.search).get("workers"));
const pool = new Pool(Math.max(1, asked || navigator.hardwareConcurrency || 2));
const viewer = new Viewer(element<HTMLCanvasElement>("view"), element("divider"), element("zoom"));
const desk = new Desk(pool, viewer, () => how.refresh());
const how = new How(() => {
  const { current, settled } = desk;
  if (current && settled) return { picture: current, options: desk.options(), settled, visible: viewer.visible() };
  return desk.busy || desk.album.items.length === 0 ? "A picture is being prepared…" : "Open a picture on the first tab.";
});

async function sample(): Promise<void> {
  const button = element<HTMLButtonElement>("sample");
  button.disabled = true;
  try {
    desk.album.add(await samples());
  } catch (error) {
    element("welcome").append(sentence(error));
  } finally {
    button.disabled = false;
  }
}

/** Lets a hidden field choose files. */
function choosing(id: string, take: (files: File[]) => void): HTMLInputElement {
  const input = element<HTMLInputElement>(id);
  input.addEventListener("change", () => {
    const files = [...(input.files ?? [])];
    input.value = "";
    if (files.length) take(files);
  });
  return input;
}

function buttons(): void {
  const on = (id: string, action: () => unknown) => element(id).addEventListener("click", () => void action());
  const file = choosing("file", (files) => desk.album.add(files));
  const clean = choosing("clean-file", ([chosen]) => {
    const item = desk.current?.item;
    if (!item) return;
    item.clean = chosen;
    desk.compare(item);
  });
  on("choose", () => file.click());
  on("add", () => file.click());
  on("clean", () => clean.click());
  on("sample", sample);
  on("save", () => saveOpen(desk, () => viewer.refresh()));
  on("all", () => saveAll(desk));
  on("cancel", () => desk.cancel());
  on("fit", () => viewer.fit());
  on("actual", () => viewer.actual());
  on("in", () => viewer.step(1.25));
  on("out", () => viewer.step(0.8));
  on("previous", () => desk.turnPage(-1));
  on("next", () => desk.turnPage(1));
  const hold = element("hold");
  hold.addEventListener("pointerdown", () => viewer.hold(true));
  hold.addEventListener("keydown", (event) => (event.key === " " || event.key === "Enter") && viewer.hold(true));
  for (const kind of ["pointerup", "pointerleave", "pointercancel", "keyup", "blur"]) {
    hold.addEventListener(kind, () => viewer.hold(false));
  }
}

buttons();
theme();
tabs((name) => {
  how.open(name === "how");
  if (name === "how" && desk.album.items.length === 0) sample();
});
keys({
  "+": () => viewer.step(1.25),
  "=": () => viewer.step(1.25),
  "-": () => viewer.step(0.8),
  "0": () => viewer.fit(),
  "1": () => viewer.actual(),
  Escape: () => !element("cancel").hidden && desk.cancel(),
});
holding("b", (held) => viewer.hold(held));
drops((files) => {
  element("tab-denoise").click();
  desk.album.add(files);
});
if ("serviceWorker" in navigator) {
  // What a first picture needs comes first.
  addEventListener("load", () => setTimeout(() => navigator.serviceWorker.register("service.js").catch(() => {}), 1500));
}
