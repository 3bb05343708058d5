// The algorithm in one figure.

import { make } from "./plot";

interface Box {
  x: number;
  width: number;
  at: string;
  lines: string[];
}

const BOXES: Box[] = [
  { x: 10, width: 190, at: "start", lines: ["u_{0} = L_{0} z", "look for structure", "with filters"] },
  { x: 250, width: 380, at: "layer", lines: ["u_{k} = s_{k}( u_{k−1} − τ_{k} L_{k} ( L_{k}* u_{k−1} − z ) )", "put together, compare with z,", "look again, squeeze;  k = 1, …, K − 1"] },
  { x: 680, width: 210, at: "end", lines: ["x = z − L_{K}* u_{K−1}", "take away what", "was put together"] },
];

/** Writes a formula, whose subscripts are in braces. */
function write(label: SVGElement, line: string): void {
  line.split(/_\{(.*?)\}/).forEach((part, i) => {
    const span = make("tspan", i % 2 ? { dy: 4, class: "index" } : { dy: i ? -4 : 0 });
    span.textContent = part;
    label.append(span);
  });
}

export function algorithm(): SVGElement {
  const svg = make("svg", { viewBox: "0 0 900 120", role: "img" });
  const title = make("title", {});
  title.textContent =
    "Unfolded dual forward-backward: u 0 is L 0 z; each layer k takes a step against L k of the difference of L k star u and z and applies its activation s k; the result is z minus L K star u.";
  const marker = make("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" });
  marker.append(make("path", { d: "M0 0L8 4L0 8z" }));
  svg.append(title, marker);
  for (const { x, width, at, lines } of BOXES) {
    svg.append(make("rect", { x, y: 30, width, height: 80, rx: 8, "data-at": at }));
    lines.forEach((line, i) => {
      const label = make("text", { x: x + width / 2, y: 58 + 20 * i, "text-anchor": "middle", class: i ? "small" : "" });
      write(label, line);
      svg.append(label);
    });
  }
  for (const d of ["M200 70H248", "M630 70H678", "M560 30C560 0 320 0 320 28"]) svg.append(make("path", { d, "marker-end": "url(#tip)" }));
  return svg;
}
