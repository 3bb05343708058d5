// A picture of the list, and its row.

import { bytes, create, seconds } from "./dom";
import { Remote } from "./remote";
import type { Info } from "./types";

export class Item {
  info: Info | undefined;
  clean: File | undefined;
  /** Set for a file that cannot be used. */
  failure = "";
  time = 0;
  psnr: number[] = [];
  readonly row = create("li");
  private button = create("button", { type: "button", class: "item" });
  private remove = create("button", { type: "button" }, "×");

  constructor(
    readonly file: File,
    chosen: (item: Item) => void,
    removed: (item: Item) => void,
  ) {
    this.button.addEventListener("click", () => chosen(this));
    this.remove.setAttribute("aria-label", `Take ${file.name} off the list`);
    this.remove.addEventListener("click", () => removed(this));
    this.row.append(this.button, this.remove);
    this.show(false);
  }

  show(current: boolean): void {
    const { info } = this;
    const facts = info ? [`${info.width} × ${info.height}`] : [];
    facts.push(bytes(this.file.size));
    if (this.time) facts.push(seconds(this.time));
    const after = this.psnr[1];
    if (after !== undefined) facts.push(`${after.toFixed(2)}\u00a0dB`);
    this.button.replaceChildren(
      create("span", { class: "name" }, this.file.name),
      create("span", { class: this.failure ? "state bad" : "state" }, this.failure || facts.join(" · ")),
    );
    this.button.setAttribute("aria-current", String(current));
  }
}

/** An open picture, in a worker of its own: what goes wrong there, and its memory, ends with it. */
export class Picture {
  readonly remote = new Remote();
  /** The settings that pages were denoised with. */
  readonly done = new Map<number, string>();

  private constructor(
    readonly item: Item,
    public info: Info,
  ) {}

  static async open(item: Item): Promise<Picture> {
    const picture = new Picture(item, undefined as unknown as Info);
    try {
      const content = new Uint8Array(await item.file.arrayBuffer());
      picture.info = item.info = await picture.remote.call("open", item.file.name, content);
      if (item.clean) await picture.compare(item.clean);
      return picture;
    } catch (error) {
      picture.close();
      throw error;
    }
  }

  async compare(file: File): Promise<void> {
    await this.remote.call("compare", file.name, new Uint8Array(await file.arrayBuffer()));
  }

  async page(index: number): Promise<void> {
    if (index !== this.info.page) this.info = await this.remote.call("openPage", index);
  }

  /** What kind of file it is. */
  facts(): string {
    const { info, item } = this;
    const depth = info.bits === 32 ? "floats" : `${info.bits} bits`;
    const colours = (info.channels === 3 ? "colour" : "grey") + (info.alpha ? " with transparency" : "");
    return [info.format, `${info.width} × ${info.height}`, depth, colours, bytes(item.file.size)].join(" · ");
  }

  close(): void {
    this.remote.end();
  }
}
