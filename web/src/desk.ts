// The open picture: shown, denoised, compared.

import { Album } from "./album";
import { element, seconds, sentence } from "./dom";
import { Item, Picture } from "./item";
import { Job, Pool } from "./pool";
import { needed } from "./files";
import { Ended } from "./remote";
import { Settings } from "./settings";
import { progress, say } from "./status";
import type { Options, Settled } from "./types";
import { Viewer } from "./viewer";

export class Desk {
  readonly album = new Album(
    (item, onwards) => void this.choose(item, onwards),
    (item, next) => this.removed(item, next),
    (item) => void this.compare(item),
  );
  readonly settings = new Settings(() => void this.run());
  current: Picture | undefined;
  settled: Settled | undefined;
  /** Ends when the picture that was chosen is open, or cannot be opened. */
  opening: Promise<void> = Promise.resolve();
  private chosen: Item | undefined;
  /** Counts what was begun: what is not the latest any more gives up. */
  private turn = 0;

  constructor(
    private pool: Pool,
    private viewer: Viewer,
    /** Told when the picture or its result is another. */
    private changed: () => void,
  ) {}

  options(): Options {
    return this.settings.options(this.pool.size);
  }

  /** Begins something else; whether it is still the latest is asked later. */
  begin(): () => boolean {
    const mine = ++this.turn;
    this.settings.used();
    this.pool.cancel();
    return () => mine === this.turn;
  }

  /** Whether a picture is open, or about to be. */
  get busy(): boolean {
    return this.chosen !== undefined;
  }

  show(): void {
    this.album.show(this.chosen);
  }

  cancel(): void {
    this.begin();
    progress(undefined);
    say("Cancelled.");
  }

  private close(): void {
    this.begin();
    this.current?.close();
    this.current = this.settled = this.chosen = undefined;
    this.viewer.clear();
    this.settings.close();
    element("pages").hidden = true;
    element("score").textContent = "";
    progress(undefined);
  }

  private removed(item: Item, next: Item | undefined): void {
    if (this.chosen === item) {
      this.close();
      if (next) this.choose(next, false);
    }
    this.show();
  }

  /** Opens a picture and denoises it; `onwards`, the next one if it cannot be opened. */
  private async choose(item: Item, onwards: boolean): Promise<void> {
    if (this.chosen === item) return;
    this.close();
    const latest = this.begin();
    this.opening = this.load(item, onwards);
    await this.opening;
    // Who saves at once has begun already.
    if (latest()) await this.run();
  }

  private async load(item: Item, onwards: boolean): Promise<void> {
    this.chosen = item;
    element("title").textContent = item.file.name;
    element("facts").textContent = "";
    say("Opening the picture…");
    this.show();
    try {
      const picture = await Picture.open(item);
      if (this.chosen !== item) return picture.close();
      this.current = picture;
      this.open();
    } catch (error) {
      item.failure = sentence(error);
      this.show();
      if (this.chosen !== item) return;
      this.chosen = undefined;
      say(item.failure, true);
      this.changed();
      const next = onwards ? this.album.after(item) : undefined;
      if (next) return this.load(next, onwards);
    }
  }

  /** Shows the open page of the current picture. */
  private open(): void {
    if (!this.current) return;
    const { info, item } = this.current;
    element("title").textContent = item.file.name;
    element("facts").textContent = this.current.facts();
    element("pages").hidden = info.pages < 2;
    element("page").textContent = `Page ${info.page + 1} of ${info.pages}`;
    element<HTMLButtonElement>("previous").disabled = info.page === 0;
    element<HTMLButtonElement>("next").disabled = info.page + 1 === info.pages;
    this.settings.open(info);
    this.viewer.show(this.current.remote, info);
    this.score();
    this.show();
  }

  async turnPage(by: number): Promise<void> {
    const picture = this.current;
    if (!picture) return;
    this.begin();
    try {
      await picture.page(picture.info.page + by);
      this.open();
      await this.run();
    } catch (error) {
      say(sentence(error), true);
    }
  }

  private score(): void {
    const [before, after] = this.current?.item.psnr ?? [];
    element("score").textContent =
      before !== undefined && after !== undefined
        ? `PSNR ${before.toFixed(2)} dB before, ${after.toFixed(2)} dB after.`
        : "With a clean picture of the same scene, you see how close the result comes.";
  }

  /** Compares the open picture with its clean partner from now on. */
  async compare(item: Item): Promise<void> {
    if (this.current?.item !== item || !item.clean) return;
    try {
      await this.current.compare(item.clean);
      item.psnr = await this.current.remote.call("psnr");
      this.score();
      this.show();
    } catch (error) {
      item.clean = undefined;
      say(sentence(error), true);
    }
  }

  /** Denoises the open page of a picture, what is on the screen first; whether that was finished. */
  async denoise(picture: Picture, latest: () => boolean): Promise<boolean> {
    const options = this.options();
    const shown = picture === this.current;
    const start = performance.now();
    progress(0);
    await picture.remote.provide(["noise", ...needed(options.model, picture.info.channels)]);
    const settled = await picture.remote.call("settle", options);
    if (!latest()) return false;
    if (shown) {
      this.settled = settled;
      this.settings.tell(settled.noise);
    }
    say("Denoising…");
    const urgency = (tile: Settled["tiles"][0]) => (shown ? this.viewer.urgency(tile) : 0);
    const job = new Job(picture.remote, options, settled, urgency, (tile, done, all) => {
      if (!latest()) return;
      progress(done / all);
      say(all > 1 ? `${done} of ${all} parts` : "Denoising…");
      if (shown) this.viewer.patch(tile);
    });
    if (!(await this.pool.run(job)) || !latest()) return false;
    await picture.remote.call("finish");
    picture.done.set(picture.info.page, JSON.stringify(options));
    picture.item.time = (performance.now() - start) / 1000;
    picture.item.psnr = await picture.remote.call("psnr");
    return latest();
  }

  /** Denoises what is open, after whatever was changed. */
  private async run(): Promise<void> {
    const picture = this.current;
    if (!picture) return;
    const latest = this.begin();
    try {
      if (!(await this.denoise(picture, latest))) return;
      progress(undefined);
      element("message").dataset.seconds = String(picture.item.time);
      say(`Done in ${seconds(picture.item.time)}. ${picture.info.notes.map(sentence).join(" ")}`.trim());
      this.viewer.refresh();
      this.score();
      this.show();
      this.changed();
    } catch (error) {
      if (!latest()) return;
      progress(undefined);
      say(sentence(error), true);
      if (error instanceof Ended && picture.remote.ended) {
        picture.item.failure = sentence(error);
        this.show();
      }
    }
  }
}
