// The workers that denoise: one for each core, fed tile by tile from a queue.

import { needed } from "./files";
import { Ended, Remote } from "./remote";
import type { Options, Rect, Settled } from "./types";

/** The work on one page of a picture. */
export class Job {
  cancelled = false;
  done = 0;
  private left: Set<number>;

  constructor(
    readonly picture: Remote,
    readonly options: Options,
    readonly settled: Settled,
    /** How soon a tile is wanted: the least first. */
    private urgency: (tile: Rect) => number,
    /** Told of every tile that is done. */
    readonly told: (tile: Rect, done: number, all: number) => void,
  ) {
    this.left = new Set(settled.tiles.keys());
  }

  /** The number of the tile that is wanted most. */
  take(): number | undefined {
    if (this.cancelled) return undefined;
    let best: number | undefined;
    let least = Infinity;
    for (const index of this.left) {
      const urgency = this.urgency(this.settled.tiles[index]!);
      if (urgency < least) [best, least] = [index, urgency];
    }
    if (best !== undefined) this.left.delete(best);
    return best;
  }
}

export class Pool {
  private workers: Remote[];
  private current: Job | undefined;
  private last: Promise<unknown> = Promise.resolve();

  constructor(readonly size: number) {
    this.workers = Array.from({ length: size }, () => new Remote());
  }

  /** Ends what is being done. */
  cancel(): void {
    const job = this.current;
    if (!job) return;
    job.cancelled = true;
    this.current = undefined;
    // A tile may take seconds, a new worker takes little.
    this.workers = this.workers.map((worker) => {
      if (!worker.busy) return worker;
      worker.end();
      return new Remote();
    });
  }

  /** Denoises a page, instead of what was being done; whether it was finished. */
  run(job: Job): Promise<boolean> {
    this.cancel();
    this.current = job;
    const run = this.last.then(() => this.lanes(job));
    this.last = run.catch(() => {});
    return run;
  }

  private async lanes(job: Job): Promise<boolean> {
    try {
      if (job.cancelled) return false;
      await Promise.all(this.workers.map((worker) => this.lane(worker, job)));
    } catch (error) {
      if (job.cancelled) return false;
      job.cancelled = true;
      if (error instanceof Ended) this.workers = this.workers.map((worker) => (worker.ended ? new Remote() : worker));
      throw error;
    }
    return !job.cancelled && job.done === job.settled.tiles.length;
  }

  /** One worker: while it denoises a tile, the next one is fetched. */
  private async lane(worker: Remote, job: Job): Promise<void> {
    const { settled, tileBytes, channels, height, width } = job.settled;
    const fetch = (index: number | undefined) =>
      index === undefined ? undefined : job.picture.call("seen", index);
    await worker.provide(needed(job.options.model, channels));
    let index = job.take();
    let seen = fetch(index);
    const puts: Promise<void>[] = [];
    while (index !== undefined && seen) {
      const now = index;
      const request = { options: job.options, settled, tileBytes, channels, height, width, index: now };
      const result = worker.call("tile", request, await seen);
      index = job.take();
      seen = fetch(index);
      seen?.catch(() => {});
      const pixels = await result;
      if (job.cancelled) return;
      puts.push(
        job.picture.call("put", now, pixels).then(() => {
          job.done += 1;
          job.told(job.settled.tiles[now]!, job.done, job.settled.tiles.length);
        }),
      );
    }
    await Promise.all(puts);
  }
}

