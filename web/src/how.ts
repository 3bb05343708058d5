// The second tab: the layers of the network on the visitor's own picture.

import { create, element } from "./dom";
import { algorithm } from "./figure";
import { needed } from "./files";
import type { Picture } from "./item";
import { make } from "./plot";
import { Remote } from "./remote";
import type { LayersInfo, Options, Rect, Settled } from "./types";

/** The side of the part that is looked at. */
const SIDE = 160;

/** What is open on the first tab. */
export interface Source {
  picture: Picture;
  options: Options;
  settled: Settled;
  visible: Rect;
}

export class How {
  private remote: Remote | undefined;
  private info: LayersInfo | undefined;
  private noisy: Uint8Array = new Uint8Array();
  private visible = false;
  private stale = true;
  private timer = 0;
  private layer = element<HTMLInputElement>("layer");
  private asking = false;
  private again = false;

  constructor(
    /** What is open, or a sentence about why nothing is. */
    private source: () => Source | string,
  ) {
    element("algorithm").append(algorithm());
    this.layer.addEventListener("input", () => {
      this.stop();
      this.show();
    });
    element("play").addEventListener("click", () => (this.timer ? this.stop() : this.play()));
  }

  /** The tab is shown or left. */
  open(visible: boolean): void {
    this.visible = visible;
    // What is on the screen may be another part by now.
    if (visible) this.refresh();
    else this.stop();
  }

  /** The picture or the settings have changed. */
  refresh(): void {
    this.stale = true;
    if (this.visible) this.load();
  }

  private async load(): Promise<void> {
    const source = this.source();
    const message = element("how-message");
    if (typeof source === "string") {
      message.textContent = source;
      element("layers").hidden = true;
      return;
    }
    if (!this.stale) return;
    this.stale = false;
    const { picture, options, settled, visible } = source;
    const even = (value: number) => value - (value % 2);
    const [height, width] = [even(Math.min(SIDE, settled.height)), even(Math.min(SIDE, settled.width))];
    if (height < 2 || width < 2) return;
    const place = (start: number, length: number, side: number, all: number) =>
      even(Math.min(all - side, Math.max(0, Math.round(start + length / 2 - side / 2))));
    const top = place(visible[0], visible[2], height, settled.height);
    const left = place(visible[1], visible[3], width, settled.width);
    message.textContent = "Looking into the layers…";
    try {
      this.remote?.end();
      const remote = (this.remote = new Remote());
      const part = await picture.remote.call("crop", top, left, height, width);
      const model = options.model === "tv" ? "best" : options.model;
      const request = { options: { ...options, model }, settled: settled.settled, channels: settled.channels, height, width };
      await remote.provide(needed(model, settled.channels));
      this.info = await remote.call("layers", request, part);
      this.noisy = await remote.call("estimate", 0);
      const { depth, features, parameters, side } = this.info;
      message.textContent =
        `${depth} layers of ${features} filters, ${side} × ${side} pixels each, ${parameters.toLocaleString("en-GB")} learned numbers, ` +
        `on ${width} × ${height} pixels from the middle of what you were looking at in ${picture.item.file.name}.`;
      this.layer.max = String(depth);
      this.layer.value = String(Math.min(depth, Number(this.layer.value)));
      element("layers").hidden = false;
      await this.show();
    } catch (error) {
      if (this.stale) return;
      element("layers").hidden = true;
      message.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  private play(): void {
    if (!this.info) return;
    if (Number(this.layer.value) === this.info.depth) this.layer.value = "-1";
    element("play").textContent = "Stop";
    const step = () => {
      this.layer.value = String(Number(this.layer.value) + 1);
      this.show();
      if (Number(this.layer.value) >= (this.info?.depth ?? 0)) this.stop();
    };
    this.timer = window.setInterval(step, 700);
    step();
  }

  private stop(): void {
    clearInterval(this.timer);
    this.timer = 0;
    element("play").textContent = "Play";
  }

  private async show(): Promise<void> {
    this.again = true;
    if (this.asking) return;
    this.asking = true;
    while (this.again) {
      this.again = false;
      await this.draw(Number(this.layer.value)).catch(() => {});
    }
    this.asking = false;
  }

  private async draw(k: number): Promise<void> {
    const { info, remote } = this;
    if (!info || !remote) return;
    const estimate = await remote.call("estimate", k);
    const dual = Math.min(k, info.depth - 1);
    const duals = await remote.call("duals", dual);
    const filters = await remote.call("filters", dual);
    const curves = dual > 0 ? await remote.call("activations", dual) : new Float32Array();
    element("layer-value").textContent = `${k} of ${info.depth}`;
    this.layer.setAttribute("aria-valuetext", `${k} of ${info.depth}`);
    element("estimate-text").textContent =
      k === 0 ? "The noisy picture" : k === info.depth ? "The result" : `The estimate after layer ${k}`;
    element("duals-title").textContent = `The dual variables ${k < info.depth ? `of layer ${dual}` : "that the result is made of"}`;
    paint(element<HTMLCanvasElement>("estimate"), estimate, info.width, info.height);
    const removed = estimate.map((value, i) => (i % 4 === 3 ? 255 : Math.min(255, Math.max(0, 128 + 2 * (this.noisy[i]! - value)))));
    paint(element<HTMLCanvasElement>("removed"), removed, info.width, info.height);
    document.querySelectorAll("#algorithm rect").forEach((box) => {
      const at = k === 0 ? "start" : k === info.depth ? "end" : "layer";
      box.classList.toggle("now", box.getAttribute("data-at") === at);
    });
    const [h, w, side] = [info.height / info.stride, info.width / info.stride, info.side];
    const shown = Array.from({ length: info.features }, (_, j) => {
      const canvas = create("canvas", { role: "img", "aria-label": `Dual variable ${j + 1}` });
      const grey = duals.subarray(j * h * w, (j + 1) * h * w);
      const rgba = new Uint8Array(4 * h * w);
      grey.forEach((value, i) => rgba.fill(value, 4 * i, 4 * i + 3).fill(255, 4 * i + 3, 4 * i + 4));
      paint(canvas, rgba, w, h);
      const filter = create("canvas", { class: "filter", role: "img", "aria-label": `Filter ${j + 1}` });
      paint(filter, filters.subarray(4 * j * side * side, 4 * (j + 1) * side * side), side, side);
      const item = create("li", {}, canvas, filter);
      if (curves.length) item.append(curve(curves.subarray(j * info.points, (j + 1) * info.points), curves.at(-1)!, j));
      return item;
    });
    element("duals").replaceChildren(...shown);
  }
}

function paint(canvas: HTMLCanvasElement, rgba: Uint8Array, width: number, height: number): void {
  [canvas.width, canvas.height] = [width, height];
  const image = new ImageData(new Uint8ClampedArray(rgba), width, height);
  canvas.getContext("2d")!.putImageData(image, 0, 0);
}

/** An activation, drawn on the same scale in both directions. */
function curve(values: Float32Array, most: number, j: number): SVGElement {
  const svg = make("svg", { viewBox: "-1 -1 2 2", preserveAspectRatio: "none", role: "img", "aria-label": `Activation ${j + 1}` });
  svg.append(make("path", { class: "axis", d: "M-1 0H1M0 -1V1", "vector-effect": "non-scaling-stroke" }));
  const points = [...values].map((value, i) => `${((2 * i) / (values.length - 1) - 1).toFixed(3)},${(-value / most).toFixed(3)}`);
  svg.append(make("polyline", { points: points.join(" ") }));
  return svg;
}
