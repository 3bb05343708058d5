// What travels between the page and its workers.

/** What the visitor chose. */
export interface Options {
  model: "best" | "small" | "photo" | "tv";
  sigma: number | null;
  kind: string | null;
  strength: number;
  workers: number;
}

/** A rectangle: top, left, height, width. */
export type Rect = [number, number, number, number];

export interface Variance {
  a: number;
  b: number;
  points: [number, number][];
}

export interface Noise {
  text: string;
  sigma: number;
  faint: boolean;
  unit: number;
  kind?: string;
  spectrum?: number[][];
  variances?: Variance[];
}

/** A page of a file. */
export interface Info {
  width: number;
  height: number;
  channels: number;
  bits: number;
  alpha: boolean;
  pages: number;
  page: number;
  format: string;
  black: number;
  white: number;
  output: string;
  notes: string[];
}

/** What is known before the tiles of a page are denoised. */
export interface Settled {
  settled: unknown;
  tileBytes: number;
  noise: Noise | null;
  model: string;
  channels: number;
  height: number;
  width: number;
  tiles: Rect[];
  whole: boolean;
}

export interface LayersInfo {
  depth: number;
  features: number;
  side: number;
  stride: number;
  colours: number;
  parameters: number;
  height: number;
  width: number;
  points: number;
}
