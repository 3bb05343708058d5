// Results as files: one, or all of the list as a zip.

import { Archive } from "./archive";
import type { Desk } from "./desk";
import { bytes, save, sentence } from "./dom";
import { Picture } from "./item";
import { progress, say } from "./status";

/** All pages of a picture, denoised with the settings as they are, as a file; nothing if it was cancelled. */
async function result(desk: Desk, picture: Picture, latest: () => boolean): Promise<Blob | undefined> {
  for (let page = 0; page < picture.info.pages; page++) {
    if (picture.done.get(page) === JSON.stringify(desk.options())) continue;
    await picture.page(page);
    if (!(await desk.denoise(picture, latest))) return undefined;
  }
  say("Writing the file…");
  const content = await picture.remote.call("encode");
  return latest() ? new Blob([content as Uint8Array<ArrayBuffer>]) : undefined;
}

export async function saveOpen(desk: Desk, shown: () => void): Promise<void> {
  const latest = desk.begin();
  await desk.opening;
  const picture = desk.current;
  if (!picture || !latest()) return;
  const page = picture.info.page;
  try {
    const blob = await result(desk, picture, latest);
    if (!blob) return;
    save(blob, picture.info.output);
    await picture.page(page);
    progress(undefined);
    say(`${picture.info.output}, ${bytes(blob.size)}.`);
    shown();
    desk.show();
  } catch (error) {
    if (!latest()) return;
    progress(undefined);
    say(sentence(error), true);
  }
}

export async function saveAll(desk: Desk): Promise<void> {
  const latest = desk.begin();
  await desk.opening;
  if (!latest()) return;
  const archive = new Archive();
  const { items } = desk.album;
  for (const item of items.filter((item) => !item.failure)) {
    let picture: Picture | undefined;
    try {
      picture = desk.current?.item === item ? desk.current : await Picture.open(item);
      const blob = latest() ? await result(desk, picture, latest) : undefined;
      if (blob) await archive.add(picture.info.output, blob);
    } catch (error) {
      if (latest()) item.failure = sentence(error);
    }
    if (picture && picture !== desk.current) picture.close();
    if (!latest()) return;
    desk.show();
  }
  progress(undefined);
  const blob = archive.finish();
  if (archive.count > 0) save(blob, "denoised.zip");
  const failed = items.filter((item) => item.failure).length;
  const held = archive.count === 1 ? "1 picture" : `${archive.count} pictures`;
  say(`${held} in denoised.zip, ${bytes(blob.size)}${failed ? `; ${failed} could not be used` : ""}.`);
}
