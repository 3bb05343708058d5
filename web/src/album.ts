// The list of pictures.

import { element } from "./dom";
import { Item } from "./item";

export class Album {
  readonly items: Item[] = [];
  private current: Item | undefined;

  constructor(
    /** Told of a picture to open, and whether it may be the next one instead. */
    private chosen: (item: Item, onwards: boolean) => void,
    private removed: (item: Item, next: Item | undefined) => void,
    /** Told of a picture that got a clean partner. */
    private paired: (item: Item) => void,
  ) {}

  /** Takes files and opens the first; the clean partner of another is told by its name. */
  add(files: Iterable<File>): void {
    const fresh = [...files].map((file) => new Item(file, (item) => this.chosen(item, false), (item) => this.remove(item)));
    this.items.push(...fresh);
    for (const item of fresh) {
      const stem = (name: string) => name.replace(/\.[^.]*$/, "");
      const partner = this.items.find((other) => other !== item && `${stem(other.file.name)}-clean` === stem(item.file.name));
      if (!partner) continue;
      partner.clean = item.file;
      this.items.splice(this.items.indexOf(item), 1);
      this.paired(partner);
    }
    this.show(this.current);
    const first = fresh.find((item) => this.items.includes(item));
    if (first) this.chosen(first, true);
  }

  private remove(item: Item): void {
    const index = this.items.indexOf(item);
    this.items.splice(index, 1);
    this.removed(item, this.items[Math.min(index, this.items.length - 1)]);
    (this.items.length ? element("add") : element("choose")).focus();
  }

  /** The next one that can be used. */
  after(item: Item): Item | undefined {
    return this.items.slice(this.items.indexOf(item) + 1).find((other) => !other.failure);
  }

  show(current: Item | undefined): void {
    this.current = current;
    element("welcome").hidden = this.items.length > 0;
    element("work").hidden = this.items.length === 0;
    this.items.forEach((item) => item.show(item === current));
    element("list").replaceChildren(...this.items.map((item) => item.row));
    element<HTMLButtonElement>("all").disabled = this.items.every((item) => item.failure);
  }
}
