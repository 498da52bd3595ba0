// Seconds as people read them and as addresses carry them.

/** `1:02.5` */
export function clock(seconds) {
  const tenths = Math.round(Math.max(0, seconds) * 10);
  const minutes = Math.floor(tenths / 600);
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  return minutes >= 60
    ? `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`
    : `${minutes}:${rest}`;
}

const short = (seconds) => String(Math.round(seconds * 1000) / 1000);

/** `#t=1.5,4`, as the standard on media fragments has it. */
export const fragment = (start, end) => `#t=${short(start)},${short(end)}`;

/** The two numbers of such a fragment, or null. */
export function parseFragment(hash) {
  const found = /^#t=(\d+(?:\.\d+)?)(?:,(\d+(?:\.\d+)?))?$/.exec(hash);
  if (!found) return null;
  const [start, end] = [Number(found[1]), found[2] === undefined ? null : Number(found[2])];
  return end !== null && end <= start ? null : [start, end];
}
