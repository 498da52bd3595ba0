// The ends of a moment, to be put where they belong: by dragging, by arrow keys, or where the film stands.

import { clock } from "./time.js";

const $ = (id) => document.getElementById(id);
const rail = document.querySelector("#ends .rail");
const stretch = document.querySelector("#ends .stretch");
const LEAST = 0.1; // seconds that a moment lasts at least

let moment = null; // as it was found
let shown = [0, 1]; // the part of the film that the rail stands for
let ends = [0, 0]; // as they are now
let changed = () => {};

/** Calls `told(span, which)` whenever an end is moved. */
export function whenMoved(told) {
  changed = told;
}

/** Shows the ends of a moment with some of the film around it; null hides them. */
export function show(answer) {
  moment = answer;
  $("ends").hidden = !answer;
  $("keep-ends").hidden = true;
  if (!answer) return;
  const around = Math.max(4, answer.end - answer.start);
  shown = [Math.max(0, answer.start - around), Math.min(Math.max(answer.duration, answer.end), answer.end + around)];
  ends = [answer.start, answer.end];
  paint();
}

/** The ends as they are now, or null. */
export const span = () => (moment ? [...ends] : null);

/** Puts both ends where somebody kept them. */
export function put(kept) {
  if (!moment || !kept) return;
  ends = [...kept];
  shown = [Math.min(shown[0], kept[0]), Math.max(shown[1], kept[1])];
  paint();
}

/** Moves one end, 0 or 1, to a second of the film. */
export function move(which, seconds) {
  if (!moment) return;
  const [least, most] = which === 0 ? [shown[0], ends[1] - LEAST] : [ends[0] + LEAST, shown[1]];
  ends[which] = Math.round(10 * Math.min(most, Math.max(least, seconds))) / 10;
  // Rounding must not leave the film.
  ends[which] = Math.min(most, Math.max(least, ends[which]));
  paint();
  changed(span(), which);
}

function paint() {
  const share = (seconds) => `${(100 * (seconds - shown[0])) / (shown[1] - shown[0])}%`;
  [$("from"), $("to")].forEach((handle, which) => {
    handle.style.left = share(ends[which]);
    const values = { min: shown[0], max: shown[1], now: ends[which] };
    for (const [name, value] of Object.entries(values)) handle.setAttribute(`aria-value${name}`, value.toFixed(1));
    handle.setAttribute("aria-valuetext", clock(ends[which]));
    handle.dataset.time = clock(ends[which]);
  });
  stretch.style.left = share(ends[0]);
  stretch.style.right = `${100 - Number.parseFloat(share(ends[1]))}%`;
}

[$("from"), $("to")].forEach((handle, which) => {
  handle.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
  });
  handle.addEventListener("pointermove", (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const box = rail.getBoundingClientRect();
    move(which, shown[0] + ((event.clientX - box.left) / box.width) * (shown[1] - shown[0]));
  });
  handle.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 1 : 0.1;
    const to = {
      ArrowLeft: ends[which] - step, ArrowDown: ends[which] - step,
      ArrowRight: ends[which] + step, ArrowUp: ends[which] + step,
      Home: shown[0], End: shown[1],
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    move(which, to);
  });
});
