// The picture on the screen: before and after on both sides of a divider, zoomed and panned.

import type { Remote } from "./remote";
import type { Info, Rect } from "./types";

/** Screen pixels that a pixel of the picture may become. */
const MOST_ZOOM = 32;

interface Shot {
  canvas: OffscreenCanvas;
  rect: Rect;
}

export class Viewer {
  private context: CanvasRenderingContext2D;
  private picture: Remote | undefined;
  private info: Info | undefined;
  private before: Shot | undefined;
  private after: Shot | undefined;
  /** Screen pixels (of CSS) for a pixel of the picture, and the picture's pixel in the middle. */
  private zoom = 1;
  private centre = { x: 0, y: 0 };
  private fitted = true;
  private held = false;
  private share = 0.5;
  private asking = false;
  private stale = false;
  private frame = 0;
  private pointers = new Map<number, { x: number; y: number }>();

  constructor(
    private canvas: HTMLCanvasElement,
    private divider: HTMLElement,
    private readout: HTMLElement,
  ) {
    this.context = canvas.getContext("2d")!;
    new ResizeObserver(() => this.resized()).observe(canvas);
    this.listen();
  }

  /** Shows a page; as it was shown if it has the same size. */
  show(picture: Remote, info: Info): void {
    const same = this.info?.width === info.width && this.info.height === info.height;
    [this.picture, this.info, this.before, this.after] = [picture, info, undefined, undefined];
    this.canvas.parentElement!.classList.remove("empty");
    if (!same) this.fit();
    this.canvas.setAttribute("aria-label", `The picture, ${info.width} by ${info.height} pixels, before and after`);
    this.ask();
  }

  clear(): void {
    this.picture = this.info = this.before = this.after = undefined;
    this.canvas.parentElement!.classList.add("empty");
    this.canvas.setAttribute("aria-label", "No picture is open");
    this.draw();
  }

  /** The part of the picture on the screen. */
  visible(): Rect {
    const { width, height } = this.info ?? { width: 1, height: 1 };
    const [w, h] = [this.canvas.clientWidth / this.zoom, this.canvas.clientHeight / this.zoom];
    const left = Math.max(0, Math.floor(this.centre.x - w / 2));
    const top = Math.max(0, Math.floor(this.centre.y - h / 2));
    const right = Math.min(width, Math.ceil(this.centre.x + w / 2));
    const bottom = Math.min(height, Math.ceil(this.centre.y + h / 2));
    return [Math.min(top, height - 1), Math.min(left, width - 1), Math.max(1, bottom - top), Math.max(1, right - left)];
  }

  /** How far a rectangle is from what is on the screen; the middle comes first. */
  urgency([top, left, height, width]: Rect): number {
    const [x, y] = [left + width / 2 - this.centre.x, top + height / 2 - this.centre.y];
    return Math.hypot(x, y);
  }

  /** A part of the result has changed. */
  async patch([top, left, height, width]: Rect): Promise<void> {
    const shot = this.after;
    if (!shot || !this.picture) return this.ask();
    const [t, l, h, w] = shot.rect;
    const [sx, sy] = [shot.canvas.width / w, shot.canvas.height / h];
    const x0 = Math.max(0, Math.floor((left - l) * sx));
    const y0 = Math.max(0, Math.floor((top - t) * sy));
    const x1 = Math.min(shot.canvas.width, Math.ceil((left + width - l) * sx));
    const y1 = Math.min(shot.canvas.height, Math.ceil((top + height - t) * sy));
    if (x1 <= x0 || y1 <= y0) return;
    const from = (value: number, scale: number, start: number) => start + Math.round(value / scale);
    const [py, px] = [from(y0, sy, t), from(x0, sx, l)];
    const [ph, pw] = [Math.max(1, from(y1, sy, t) - py), Math.max(1, from(x1, sx, l) - px)];
    const rgba = await this.picture.call("view", true, py, px, ph, pw, y1 - y0, x1 - x0).catch(() => undefined);
    if (!rgba || this.after !== shot) return;
    shot.canvas.getContext("2d")!.putImageData(image(rgba, x1 - x0, y1 - y0), x0, y0);
    this.draw();
  }

  /** All of the result may have changed. */
  refresh(): void {
    this.ask();
  }

  fit(): void {
    if (!this.info) return;
    const { width, height } = this.info;
    this.fitted = true;
    const fitting = Math.min(this.canvas.clientWidth / width, this.canvas.clientHeight / height);
    this.zoom = Math.min(fitting || 1, 8);
    this.centre = { x: width / 2, y: height / 2 };
    this.moved();
  }

  /** One pixel of the picture for one of the screen. */
  actual(): void {
    this.zoomTo(1 / devicePixelRatio);
  }

  step(factor: number): void {
    this.zoomTo(this.zoom * factor);
  }

  /** Shows the picture without the result while a key is held. */
  hold(held: boolean): void {
    if (held === this.held) return;
    this.held = held;
    this.draw();
  }

  private zoomTo(zoom: number, at?: { x: number; y: number }): void {
    if (!this.info) return;
    this.fitted = false;
    const least = Math.min(1, 64 / Math.max(this.info.width, this.info.height));
    const next = Math.min(MOST_ZOOM, Math.max(least, zoom));
    if (at) {
      const [x, y] = [at.x - this.canvas.clientWidth / 2, at.y - this.canvas.clientHeight / 2];
      this.centre.x += x / this.zoom - x / next;
      this.centre.y += y / this.zoom - y / next;
    }
    this.zoom = next;
    this.moved();
  }

  private pan(dx: number, dy: number): void {
    this.fitted = false;
    this.centre.x -= dx / this.zoom;
    this.centre.y -= dy / this.zoom;
    this.moved();
  }

  private moved(): void {
    if (this.info) {
      this.centre.x = Math.min(this.info.width, Math.max(0, this.centre.x));
      this.centre.y = Math.min(this.info.height, Math.max(0, this.centre.y));
      this.readout.textContent = `${Math.round(100 * this.zoom * devicePixelRatio)} %`;
    }
    this.draw();
    this.ask();
  }

  private resized(): void {
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * devicePixelRatio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * devicePixelRatio));
    if (this.fitted) this.fit();
    else this.moved();
  }

  /** Asks for what is on the screen, once at a time. */
  private async ask(): Promise<void> {
    this.stale = true;
    if (this.asking) return;
    this.asking = true;
    while (this.stale && this.picture) {
      this.stale = false;
      const picture = this.picture;
      const rect = this.visible();
      const [top, left, height, width] = rect;
      const scale = Math.min(1, this.zoom * devicePixelRatio);
      const [oh, ow] = [Math.max(1, Math.round(height * scale)), Math.max(1, Math.round(width * scale))];
      try {
        const shots = [];
        for (const result of [false, true]) {
          const rgba = await picture.call("view", result, top, left, height, width, oh, ow);
          const canvas = new OffscreenCanvas(ow, oh);
          canvas.getContext("2d")!.putImageData(image(rgba, ow, oh), 0, 0);
          shots.push({ canvas, rect });
        }
        if (picture === this.picture) [this.before, this.after] = shots;
        this.draw();
      } catch {
        break;
      }
    }
    this.asking = false;
  }

  private draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    const { context, canvas, zoom } = this;
    const ratio = devicePixelRatio;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!this.before) return;
    const [cw, ch] = [canvas.width, canvas.height];
    const at = this.held ? cw : this.share * cw;
    const put = (shot: Shot | undefined, from: number, to: number) => {
      if (!shot || to <= from) return;
      const [top, left, height, width] = shot.rect;
      const place = (value: number, centre: number, side: number) => (value - centre) * zoom * ratio + side / 2;
      context.save();
      context.beginPath();
      context.rect(from, 0, to - from, ch);
      context.clip();
      context.imageSmoothingEnabled = zoom * ratio < 1;
      const [x, y] = [place(left, this.centre.x, cw), place(top, this.centre.y, ch)];
      context.drawImage(shot.canvas, x, y, width * zoom * ratio, height * zoom * ratio);
      context.restore();
    };
    put(this.before, 0, at);
    put(this.after, at, cw);
  }

  private place(share: number): void {
    this.share = Math.min(1, Math.max(0, share));
    const percent = Math.round(100 * this.share);
    this.divider.style.left = `${100 * this.share}%`;
    this.divider.setAttribute("aria-valuenow", String(percent));
    this.divider.setAttribute("aria-valuetext", `${percent} % of the width is the original`);
    this.draw();
  }

  private listen(): void {
    const { canvas, divider } = this;
    const local = (event: MouseEvent) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    divider.addEventListener("pointerdown", (event) => {
      divider.setPointerCapture(event.pointerId);
      event.preventDefault();
      divider.focus();
    });
    divider.addEventListener("pointermove", (event) => {
      if (divider.hasPointerCapture(event.pointerId)) this.place(local(event).x / canvas.clientWidth);
    });
    divider.addEventListener("keydown", (event) => {
      const steps: Record<string, number> = { ArrowLeft: -0.02, ArrowRight: 0.02, PageDown: -0.1, PageUp: 0.1 };
      const step = steps[event.key];
      if (step !== undefined) this.place(this.share + step);
      else if (event.key === "Home") this.place(0);
      else if (event.key === "End") this.place(1);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, local(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = this.pointers.get(event.pointerId);
      if (!before) return;
      const now = local(event);
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const length = (p: { x: number; y: number }) => Math.max(1, Math.hypot(p.x - other.x, p.y - other.y));
        this.zoomTo((this.zoom * length(now)) / length(before), other);
      } else this.pan(now.x - before.x, now.y - before.y);
      this.pointers.set(event.pointerId, now);
    });
    for (const kind of ["pointerup", "pointercancel"] as const) {
      canvas.addEventListener(kind, (event) => this.pointers.delete(event.pointerId));
    }
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoomTo(this.zoom * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0018)), local(event));
      },
      { passive: false },
    );
    canvas.addEventListener("dblclick", () => (this.fitted ? this.actual() : this.fit()));
    canvas.addEventListener("keydown", (event) => {
      const far = 60;
      const moves: Record<string, [number, number]> = {
        ArrowLeft: [far, 0],
        ArrowRight: [-far, 0],
        ArrowUp: [0, far],
        ArrowDown: [0, -far],
      };
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      this.pan(...move);
    });
    this.place(0.5);
  }
}

function image(rgba: Uint8Array, width: number, height: number): ImageData {
  return new ImageData(new Uint8ClampedArray(rgba.buffer as ArrayBuffer, rgba.byteOffset, rgba.length), width, height);
}
