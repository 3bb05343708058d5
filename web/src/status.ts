// The line below the picture: what happens, how far it is, and what went wrong.

import { element } from "./dom";

export function say(text: string, bad = false): void {
  const message = element("message");
  message.textContent = text;
  message.className = bad ? "bad" : "";
}

/** How much is done, while something is. */
export function progress(share: number | undefined): void {
  const bar = element<HTMLProgressElement>("progress");
  bar.hidden = element("cancel").hidden = share === undefined;
  bar.value = share ?? 0;
}
