// The noise of a picture drawn: against the brightness, or by fineness.

import type { Noise } from "./types";

const COLOURS = ["var(--red)", "var(--green)", "var(--blue)"];
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [280, 120, 40, 20, 20];

interface Line {
  points: [number, number][];
  colour: string;
  dots: boolean;
}

/** A small drawing, or nothing for noise that was given. */
export function plot(noise: Noise | null): SVGSVGElement | undefined {
  if (!noise) return undefined;
  const colour = (c: number, of: number) => (of === 3 ? COLOURS[c]! : "var(--accent)");
  const lines: Line[] = [];
  const variances = (noise.variances ?? []).filter((variance) => variance.points.length > 1);
  const against = variances.length > 0 && noise.kind !== "camera";
  if (against) {
    variances.forEach((variance, c) => {
      const dots = variance.points.map(([x, v]): [number, number] => [x, Math.sqrt(Math.max(0, v))]);
      const xs = dots.map(([x]) => x);
      const [low, high] = [Math.min(...xs), Math.max(...xs)];
      const at = (x: number) => Math.sqrt(Math.max(0, variance.a + variance.b * x));
      const fitted = Array.from({ length: 33 }, (_, i): [number, number] => {
        const x = low + ((high - low) * i) / 32;
        return [x, at(x)];
      });
      lines.push({ points: fitted, colour: colour(c, variances.length), dots: false });
      lines.push({ points: dots, colour: colour(c, variances.length), dots: true });
    });
  } else {
    (noise.spectrum ?? []).forEach((levels, c, all) => {
      const points = levels.map((level, i): [number, number] => [(i + 1) / levels.length, level]);
      lines.push({ points, colour: colour(c, all.length), dots: false });
    });
  }
  if (lines.length === 0) return undefined;
  const scale = noise.unit < 1 ? 255 : 1;
  const title = against ? "Noise against brightness" : "Noise from coarse to fine";
  const words = against ? ["dark", "bright"] : ["coarse", "fine"];
  return draw(title, words, lines, scale);
}

function draw(title: string, [low, high]: string[], lines: Line[], scale: number): SVGSVGElement {
  const all = lines.flatMap((line) => line.points);
  const xs = all.map(([x]) => x);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const most = 1.15 * Math.max(...all.map(([, y]) => y)) || 1;
  const x = (value: number) => LEFT + ((WIDTH - LEFT - 8) * (value - x0)) / (x1 - x0 || 1);
  const y = (value: number) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * value) / most;
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "plot" }) as SVGSVGElement;
  svg.setAttribute("aria-label", title);
  svg.append(make("path", { class: "axis", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - 8}` }));
  const label = (value: number) => (scale * value >= 10 ? (scale * value).toFixed(0) : (scale * value).toPrecision(2));
  for (const value of [0, most / 1.15]) {
    svg.append(text(make("text", { x: LEFT - 4, y: y(value) + 4, "text-anchor": "end" }), value ? label(value) : "0"));
  }
  svg.append(text(make("text", { x: LEFT, y: 11 }), scale === 255 ? `${title}, of 255` : title));
  svg.append(text(make("text", { x: LEFT, y: HEIGHT - 6 }), low!));
  svg.append(text(make("text", { x: WIDTH - 8, y: HEIGHT - 6, "text-anchor": "end" }), high!));
  for (const { points, colour, dots } of lines) {
    if (dots) points.forEach((p) => svg.append(make("circle", { cx: x(p[0]), cy: y(p[1]), r: 2.2, fill: colour })));
    else svg.append(make("polyline", { points: points.map((p) => `${x(p[0])},${y(p[1])}`).join(" "), stroke: colour }));
  }
  return svg;
}

export function make(name: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

function text(element: SVGElement, content: string): SVGElement {
  element.textContent = content;
  return element;
}
