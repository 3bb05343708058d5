// Several files as one.

import { Zip, ZipPassThrough } from "fflate";

/** Bytes that are added at once, so that the page goes on in between. */
const PIECE = 1 << 20;

export class Archive {
  private parts: Uint8Array<ArrayBuffer>[] = [];
  private zip = new Zip((_, part) => this.parts.push(part as Uint8Array<ArrayBuffer>));
  private names = new Set<string>();

  get count(): number {
    return this.names.size;
  }

  /** Adds a file as it is, under another name where there is one of that name. */
  async add(name: string, file: Blob): Promise<void> {
    const [, stem, extension] = /^(.*?)(\.[^.]*)?$/.exec(name)!;
    let free = name;
    for (let i = 2; this.names.has(free); i++) free = `${stem} (${i})${extension ?? ""}`;
    this.names.add(free);
    const entry = new ZipPassThrough(free);
    this.zip.add(entry);
    for (let at = 0; at < file.size; at += PIECE) {
      const content = new Uint8Array(await file.slice(at, at + PIECE).arrayBuffer());
      entry.push(content, at + PIECE >= file.size);
    }
  }

  finish(): Blob {
    this.zip.end();
    return new Blob(this.parts, { type: "application/zip" });
  }
}
