// The page: what is chosen, opened, denoised and saved.

import { Archive } from "./archive";
import { bytes, element, save, seconds, sentence } from "./dom";
import { How } from "./how";
import { drops, holding, keys } from "./input";
import { Item, Picture } from "./item";
import { Job, Pool } from "./pool";
import { Ended, needed } from "./remote";
import { samples } from "./samples";
import { Settings } from "./settings";
import { tabs, theme } from "./shell";
import type { Options, Settled } from "./types";
import { Viewer } from "./viewer";

const pool = new Pool(Math.max(1, Number(new URLSearchParams(location.search).get("workers")) || navigator.hardwareConcurrency || 2));
const viewer = new Viewer(element<HTMLCanvasElement>("view"), element("divider"), element("zoom"));
const settings = new Settings(() => run());
const how = new How(() => current && last && { picture: current, options: chosen(), settled: last, visible: viewer.visible() });

const message = element("message");
const items: Item[] = [];
let current: Picture | undefined;
let last: Settled | undefined;
/** Counts what was begun: what is not the latest any more gives up. */
let turn = 0;

function chosen(): Options {
  return settings.options(current!.info, pool.size);
}

function say(text: string, bad = false): void {
  message.textContent = text;
  message.className = bad ? "bad" : "";
}

function progress(share: number | undefined): void {
  const bar = element<HTMLProgressElement>("progress");
  bar.hidden = element("cancel").hidden = share === undefined;
  bar.value = share ?? 0;
}

function list(): void {
  element("welcome").hidden = items.length > 0;
  element("work").hidden = items.length === 0;
  items.forEach((item) => item.show(item === current?.item));
  element("list").replaceChildren(...items.map((item) => item.row));
  element<HTMLButtonElement>("all").disabled = items.every((item) => item.failure);
}

/** Takes files; the clean partner of another is told by its name. */
function add(files: Iterable<File>): void {
  const fresh = [...files].map((file) => new Item(file, choose, remove));
  items.push(...fresh);
  for (const item of fresh) {
    const stem = (name: string) => name.replace(/\.[^.]*$/, "");
    const partner = items.find((other) => other !== item && `${stem(other.file.name)}-clean` === stem(item.file.name));
    if (!partner) continue;
    partner.clean = item.file;
    items.splice(items.indexOf(item), 1);
    if (current?.item === partner) compare(partner);
  }
  list();
  const first = fresh.find((item) => items.includes(item));
  if (first) choose(first);
}

function remove(item: Item): void {
  const index = items.indexOf(item);
  items.splice(index, 1);
  if (current?.item === item) {
    close();
    const next = items[Math.min(index, items.length - 1)];
    if (next) choose(next);
  }
  list();
  (items.length ? element("add") : element("choose")).focus();
}

function close(): void {
  turn += 1;
  pool.cancel();
  current?.close();
  current = last = undefined;
  viewer.clear();
  progress(undefined);
}

async function choose(item: Item): Promise<void> {
  if (current?.item === item) return;
  close();
  const mine = turn;
  element("title").textContent = item.file.name;
  element("facts").textContent = "";
  say("Opening the picture…");
  try {
    const picture = await Picture.open(item);
    if (mine !== turn) return picture.close();
    current = picture;
    show();
    await run();
  } catch (error) {
    if (mine !== turn) return;
    item.failure = sentence(error);
    say(item.failure, true);
    list();
    // The rest of the list goes on.
    const next = items.slice(items.indexOf(item) + 1).find((other) => !other.failure);
    if (next) choose(next);
  }
}

/** Shows the open page of the current picture. */
function show(): void {
  if (!current) return;
  const { info, item } = current;
  element("title").textContent = item.file.name;
  element("facts").textContent = current.facts();
  element("pages").hidden = info.pages < 2;
  element("page").textContent = `Page ${info.page + 1} of ${info.pages}`;
  element<HTMLButtonElement>("previous").disabled = info.page === 0;
  element<HTMLButtonElement>("next").disabled = info.page + 1 === info.pages;
  settings.open(info);
  viewer.show(current.remote, info);
  score();
  list();
}

function score(): void {
  const [before, after] = current?.item.psnr ?? [];
  element("score").textContent =
    before !== undefined && after !== undefined
      ? `PSNR ${before.toFixed(2)} dB before, ${after.toFixed(2)} dB after.`
      : "With a clean picture of the same scene, you see how close the result comes.";
}

/** Denoises the open page of a picture; whether that was finished. */
async function denoise(picture: Picture, mine: number): Promise<boolean> {
  const options = settings.options(picture.info, pool.size);
  const shown = picture === current;
  pool.cancel();
  const start = performance.now();
  await picture.remote.provide(needed(options.model, picture.info.channels));
  const settled = await picture.remote.call("settle", options);
  if (mine !== turn) return false;
  if (shown) {
    last = settled;
    settings.tell(settled.noise);
  }
  progress(0);
  say("Denoising…");
  const urgency = (tile: Settled["tiles"][0]) => (shown ? viewer.urgency(tile) : 0);
  const job = new Job(picture.remote, options, settled, urgency, (tile, done, all) => {
    if (mine !== turn) return;
    progress(done / all);
    say(all > 1 ? `${done} of ${all} parts` : "Denoising…");
    if (shown) viewer.patch(tile);
  });
  if (!(await pool.run(job)) || mine !== turn) return false;
  await picture.remote.call("finish");
  picture.done.set(picture.info.page, JSON.stringify(options));
  picture.item.time = (performance.now() - start) / 1000;
  picture.item.psnr = await picture.remote.call("psnr");
  picture.item.state = "denoised";
  return mine === turn;
}

/** Denoises what is on the screen, after whatever was changed. */
async function run(): Promise<void> {
  const picture = current;
  if (!picture) return;
  const mine = ++turn;
  try {
    if (!(await denoise(picture, mine))) return;
    progress(undefined);
    message.dataset.seconds = String(picture.item.time);
    say(`Done in ${seconds(picture.item.time)}. ${picture.info.notes.map(sentence).join(" ")}`.trim());
    viewer.refresh();
    score();
    list();
    how.refresh();
  } catch (error) {
    if (mine !== turn) return;
    progress(undefined);
    say(sentence(error), true);
    if (error instanceof Ended && picture.remote.ended) {
      picture.item.failure = sentence(error);
      list();
    }
  }
}

/** All pages of a picture, denoised with the settings as they are, as a file; nothing if it was cancelled. */
async function result(picture: Picture, mine: number): Promise<Blob | undefined> {
  for (let page = 0; page < picture.info.pages; page++) {
    const options = JSON.stringify(settings.options(picture.info, pool.size));
    if (picture.done.get(page) === options) continue;
    await picture.page(page);
    if (!(await denoise(picture, mine))) return undefined;
  }
  say("Writing the file…");
  const content = await picture.remote.call("encode");
  return mine === turn ? new Blob([content as Uint8Array<ArrayBuffer>]) : undefined;
}

async function saveCurrent(): Promise<void> {
  const picture = current;
  if (!picture) return;
  const mine = ++turn;
  const page = picture.info.page;
  try {
    const blob = await result(picture, mine);
    if (!blob) return;
    save(blob, picture.info.output);
    await picture.page(page);
    progress(undefined);
    say(`${picture.info.output}, ${bytes(blob.size)}.`);
    viewer.refresh();
    list();
  } catch (error) {
    progress(undefined);
    say(sentence(error), true);
  }
}

async function saveAll(): Promise<void> {
  const mine = ++turn;
  const archive = new Archive();
  for (const item of items.filter((item) => !item.failure)) {
    let picture: Picture | undefined;
    try {
      picture = current?.item === item ? current : await Picture.open(item);
      const blob = mine === turn ? await result(picture, mine) : undefined;
      if (!blob) {
        if (picture !== current) picture.close();
        return;
      }
      await archive.add(picture.info.output, blob);
    } catch (error) {
      item.failure = sentence(error);
    }
    if (picture && picture !== current) picture.close();
    list();
  }
  progress(undefined);
  const blob = archive.finish();
  if (archive.count > 0) save(blob, "denoised.zip");
  const failed = items.filter((item) => item.failure).length;
  say(`${archive.count} in denoised.zip, ${bytes(blob.size)}${failed ? `; ${failed} could not be used` : ""}.`);
}

async function compare(item: Item): Promise<void> {
  if (current?.item !== item || !item.clean) return;
  try {
    await current.compare(item.clean);
    item.psnr = await current.remote.call("psnr");
    score();
    list();
  } catch (error) {
    item.clean = undefined;
    say(sentence(error), true);
  }
}

async function sample(): Promise<void> {
  element<HTMLButtonElement>("sample").disabled = true;
  try {
    add(await samples());
  } catch (error) {
    element("welcome").append(sentence(error));
  } finally {
    element<HTMLButtonElement>("sample").disabled = false;
  }
}

function cancel(): void {
  turn += 1;
  pool.cancel();
  progress(undefined);
  say("Cancelled.");
}

async function turnPage(by: number): Promise<void> {
  const picture = current;
  if (!picture) return;
  turn += 1;
  pool.cancel();
  try {
    await picture.page(picture.info.page + by);
    show();
    await run();
  } catch (error) {
    say(sentence(error), true);
  }
}

function listen(): void {
  const on = (id: string, action: () => unknown) => element(id).addEventListener("click", () => void action());
  const file = element<HTMLInputElement>("file");
  const clean = element<HTMLInputElement>("clean-file");
  on("choose", () => file.click());
  on("add", () => file.click());
  on("clean", () => clean.click());
  on("sample", sample);
  on("save", saveCurrent);
  on("all", saveAll);
  on("cancel", cancel);
  on("fit", () => viewer.fit());
  on("actual", () => viewer.actual());
  on("in", () => viewer.step(1.25));
  on("out", () => viewer.step(0.8));
  on("previous", () => turnPage(-1));
  on("next", () => turnPage(1));
  file.addEventListener("change", () => {
    add(file.files ?? []);
    file.value = "";
  });
  clean.addEventListener("change", () => {
    const chosen = clean.files?.[0];
    clean.value = "";
    if (!chosen || !current) return;
    current.item.clean = chosen;
    compare(current.item);
  });
  const hold = element("hold");
  hold.addEventListener("pointerdown", () => viewer.hold(true));
  hold.addEventListener("keydown", (event) => (event.key === " " || event.key === "Enter") && viewer.hold(true));
  for (const kind of ["pointerup", "pointerleave", "pointercancel", "keyup", "blur"]) {
    hold.addEventListener(kind, () => viewer.hold(false));
  }
  theme();
  tabs((name) => {
    how.open(name === "how");
    if (name === "how" && items.length === 0) sample();
  });
  keys({
    "+": () => viewer.step(1.25),
    "=": () => viewer.step(1.25),
    "-": () => viewer.step(0.8),
    "0": () => viewer.fit(),
    "1": () => viewer.actual(),
    Escape: () => !element("cancel").hidden && cancel(),
  });
  holding("b", (held) => viewer.hold(held));
  drops((files) => {
    element("tab-denoise").click();
    add(files);
  });
}

listen();
if ("serviceWorker" in navigator) navigator.serviceWorker.register("service.js").catch(() => {});
