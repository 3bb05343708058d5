// The controls: what the visitor chose, and what was found.

import { element } from "./dom";
import { plot } from "./plot";
import type { Info, Noise, Options } from "./types";

const KINDS: Record<string, string> = {
  gaussian: "Even noise",
  camera: "Noise of a camera",
  poisson: "Noise of photon counts",
  "poisson-gaussian": "Noise of photon counts, with read noise",
};

/** The highest level of the slider, as a share of the picture's range. */
const HIGHEST = 0.5;

/** Milliseconds that a slider rests before its value is used. */
const PAUSE = 80;

export class Settings {
  private model = element<HTMLSelectElement>("model");
  private kind = element<HTMLSelectElement>("kind");
  private level = element<HTMLInputElement>("level");
  private auto = element<HTMLInputElement>("auto");
  private strength = element<HTMLInputElement>("strength");
  private range = 1;
  private fraction = true;
  private found: Noise | null = null;
  /** While a slider moves, not every place of it is worth beginning anew. */
  private timer = 0;

  constructor(changed: () => void) {
    const soon = () => {
      this.used();
      this.timer = window.setTimeout(changed, PAUSE);
    };
    this.level.addEventListener("input", () => {
      this.auto.checked = false;
      this.show();
      soon();
    });
    this.strength.addEventListener("input", () => {
      this.show();
      soon();
    });
    for (const control of [this.model, this.kind]) control.addEventListener("change", changed);
    this.kind.addEventListener("change", () => this.show());
    this.auto.addEventListener("change", () => {
      if (this.auto.checked && this.found) this.place(this.found.sigma);
      this.show();
      changed();
    });
    element("reset").addEventListener("click", () => {
      [this.model.value, this.kind.value, this.strength.value, this.auto.checked] = ["best", "", "1", true];
      this.show();
      changed();
    });
  }

  /** The values are used as they are. */
  used(): void {
    clearTimeout(this.timer);
  }

  options(workers: number): Options {
    const counted = this.kind.value.startsWith("poisson");
    const given = !this.auto.checked && !counted;
    // A level leaves the kind that was found as it is, unless that has levels of its own.
    const found = given && this.found?.kind === "camera" ? "camera" : null;
    return {
      model: this.model.value as Options["model"],
      sigma: given ? this.sigma() : null,
      kind: this.kind.value || found,
      strength: Number(this.strength.value),
      workers,
    };
  }

  /** For another picture. */
  open(info: Info): void {
    this.range = info.white - info.black;
    this.fraction = info.bits < 32;
    this.close();
    element("noise").textContent = "Looking at the picture…";
    this.show();
  }

  /** Nothing is known of any picture. */
  close(): void {
    this.found = null;
    element("noise").textContent = "";
    element("noise").title = "";
    element("plot").replaceChildren();
  }

  /** Shows the noise that was found. */
  tell(noise: Noise | null): void {
    if (!noise?.kind) return;
    this.found = noise;
    const level = this.text(noise.sigma);
    const words = KINDS[noise.kind] ?? "Noise";
    element("noise").textContent = noise.faint
      ? `Hardly any noise (${level}): the picture stays nearly as it is.`
      : `${words}, level ${level}.`;
    element("noise").title = noise.text;
    element("plot").replaceChildren(...[plot(noise)].filter((drawing) => drawing !== undefined));
    if (this.auto.checked) this.place(noise.sigma);
    this.show();
  }

  private sigma(): number {
    return HIGHEST * this.range * (Number(this.level.value) / 1000) ** 2;
  }

  private place(sigma: number): void {
    this.level.value = String(Math.round(1000 * Math.sqrt(Math.min(1, sigma / (HIGHEST * this.range)))));
  }

  private text(sigma: number): string {
    return this.fraction ? `${(255 * sigma).toFixed(1)}/255` : sigma.toPrecision(2);
  }

  private show(): void {
    const counted = this.kind.value.startsWith("poisson");
    this.level.disabled = counted;
    const sigma = this.auto.checked && this.found ? this.found.sigma : this.sigma();
    element("level-value").textContent = counted ? "automatic" : this.text(sigma);
    this.level.setAttribute("aria-valuetext", this.text(sigma));
    element("strength-value").textContent = Number(this.strength.value).toFixed(2);
  }
}
