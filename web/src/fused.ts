// Which of the two modules this browser takes.

/** A module whose one function multiplies (1 + 2^-12)^2 and takes 1 + 2^-11 away: 2^-24 is left if products are not rounded
 * before they are added. */
// prettier-ignore
const PROBE = new Uint8Array([
  0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // the header
  1, 5, 1, 0x60, 0, 1, 0x7d, // its type: () -> f32
  3, 2, 1, 0,
  7, 5, 1, 1, 0x66, 0, 0, // exported as "f"
  10, 64, 1, 62, 0,
  0xfd, 12, 0x00, 0x08, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0xfd, 12, 0x00, 0x08, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0xfd, 12, 0x00, 0x10, 0x80, 0xbf, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0xfd, 0x85, 2, // f32x4.relaxed_madd
  0xfd, 31, 0, 11, // its first lane
]);

/** Whether vectors are multiplied and added in one go, as processors of the last decade do. */
export function fused(): boolean {
  if (!WebAssembly.validate(PROBE)) return false;
  const { f } = new WebAssembly.Instance(new WebAssembly.Module(PROBE)).exports;
  return (f as () => number)() === 2 ** -24;
}
