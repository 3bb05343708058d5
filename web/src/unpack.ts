// The module of the page is compressed by LZMA, which browsers do not know: it is a quarter smaller than what they know.

/** Contexts of the numbers in a tree of `bits` bits. */
const tree = (bits: number) => new Uint16Array(1 << bits).fill(1024);

/** The bytes of a stream in the format of `xz --format=lzma`, whose length it says. */
export function unpack(packed: Uint8Array): Uint8Array<ArrayBuffer> {
  const header = new DataView(packed.buffer, packed.byteOffset);
  const settings = packed[0]!;
  const [lc, lp, pb] = [settings % 9, Math.floor(settings / 9) % 5, Math.floor(settings / 45)];
  const out = new Uint8Array(header.getUint32(5, true));
  let at = 14;
  let range = 0xffffffff;
  let code = header.getUint32(at) >>> 0;
  at += 4;

  const bit = (contexts: Uint16Array, i: number): number => {
    const chance = contexts[i]!;
    const bound = (range >>> 11) * chance;
    let found = 0;
    if (code >>> 0 < bound) {
      range = bound;
      contexts[i] = chance + ((2048 - chance) >>> 5);
    } else {
      range = (range - bound) >>> 0;
      code = (code - bound) >>> 0;
      contexts[i] = chance - (chance >>> 5);
      found = 1;
    }
    if (range < 0x1000000) {
      range = (range << 8) >>> 0;
      code = ((code << 8) | packed[at++]!) >>> 0;
    }
    return found;
  };
  const number = (contexts: Uint16Array, bits: number, start = 0): number => {
    let value = 1;
    for (let i = 0; i < bits; i++) value = (value << 1) | bit(contexts, start + value);
    return value - (1 << bits);
  };
  const reversed = (contexts: Uint16Array, bits: number, start = 0): number => {
    let [value, place] = [0, 1];
    for (let i = 0; i < bits; i++) {
      const found = bit(contexts, start + place);
      place = (place << 1) | found;
      value |= found << i;
    }
    return value;
  };
  const plain = (bits: number): number => {
    let value = 0;
    for (let i = 0; i < bits; i++) {
      range >>>= 1;
      const found = code >= range ? 1 : 0;
      if (found) code = (code - range) >>> 0;
      value = (value << 1) | found;
      if (range < 0x1000000) {
        range = (range << 8) >>> 0;
        code = ((code << 8) | packed[at++]!) >>> 0;
      }
    }
    return value;
  };

  const isMatch = tree(8);
  const [isRep, isRep0, isRep1, isRep2] = [tree(4), tree(4), tree(4), tree(4)];
  const isRep0Long = tree(8);
  const literals = tree(lc + lp).length * 0x300;
  const literal = new Uint16Array(literals).fill(1024);
  const lengths = () => ({ choice: tree(1), low: tree(7), mid: tree(7), high: tree(8) });
  const [matchLength, repLength] = [lengths(), lengths()];
  const slots = [tree(6), tree(6), tree(6), tree(6)];
  const near = tree(7);
  const align = tree(4);
  const length = (of: ReturnType<typeof lengths>, pos: number): number => {
    if (!bit(of.choice, 0)) return 2 + number(of.low, 3, pos << 3);
    if (!bit(of.choice, 1)) return 10 + number(of.mid, 3, pos << 3);
    return 18 + number(of.high, 8);
  };

  let [state, size] = [0, 0];
  let [rep0, rep1, rep2, rep3] = [0, 0, 0, 0];
  while (size < out.length) {
    const pos = size & ((1 << pb) - 1);
    if (!bit(isMatch, (state << 4) + pos)) {
      const before = size > 0 ? out[size - 1]! : 0;
      const start = 0x300 * (((size & ((1 << lp) - 1)) << lc) + (before >> (8 - lc)));
      let value = 1;
      if (state >= 7) {
        let other = out[size - rep0 - 1]!;
        while (value < 0x100) {
          const expected = (other >> 7) & 1;
          other <<= 1;
          const found = bit(literal, start + ((1 + expected) << 8) + value);
          value = (value << 1) | found;
          if (found !== expected) break;
        }
      }
      while (value < 0x100) value = (value << 1) | bit(literal, start + value);
      out[size++] = value;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let count: number;
    if (bit(isRep, state)) {
      if (!bit(isRep0, state)) {
        if (!bit(isRep0Long, (state << 4) + pos)) {
          state = state < 7 ? 9 : 11;
          out[size] = out[size - rep0 - 1]!;
          size++;
          continue;
        }
      } else if (!bit(isRep1, state)) [rep0, rep1] = [rep1, rep0];
      else if (!bit(isRep2, state)) [rep0, rep1, rep2] = [rep2, rep0, rep1];
      else [rep0, rep1, rep2, rep3] = [rep3, rep0, rep1, rep2];
      count = length(repLength, pos);
      state = state < 7 ? 8 : 11;
    } else {
      [rep1, rep2, rep3] = [rep0, rep1, rep2];
      count = length(matchLength, pos);
      state = state < 7 ? 7 : 10;
      const slot = number(slots[Math.min(count - 2, 3)]!, 6);
      rep0 = slot;
      if (slot >= 4) {
        const bits = (slot >> 1) - 1;
        rep0 = (2 | (slot & 1)) << bits;
        if (slot < 14) rep0 += reversed(near, bits, rep0 - slot);
        else rep0 += (plain(bits - 4) << 4) + reversed(align, 4);
      }
    }
    for (const end = Math.min(size + count, out.length); size < end; size++) out[size] = out[size - rep0 - 1]!;
  }
  return out;
}
