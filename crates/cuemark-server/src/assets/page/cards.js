// The answers: one card each, the weaker ones folded away.

import { ask, path } from "./api.js";
import { marked, wanted } from "./marking.js";
import { clock } from "./time.js";

const $ = (id) => document.getElementById(id);

/** What was found, as shown. */
export let found = [];
let shown = ""; // the question that they answer

/** Shows answers. `about.calibrated` says whether a probability may be read as one. */
export function show({ answers, good }, { query, calibrated, play }) {
  found = answers;
  shown = query;
  const words = wanted(query || "");
  $("results").replaceChildren(...answers.map((answer, place) => {
    const item = card(answer, place, { words, calibrated });
    item.classList.toggle("weak", place >= good);
    item.hidden = place >= good;
    item.querySelector(".card").addEventListener("click", () => play(answer));
    if (place < good) strip(item, answer, query);
    return item;
  }));
  const weak = answers.length - good;
  $("weaker").hidden = weak <= 0;
  $("weaker").textContent = good ? `Show ${weak} weaker` : `Show the ${weak} nearest`;
  $("weaker").setAttribute("aria-expanded", "false");
}

/** The cards that can be seen. */
export const visible = () => [...document.querySelectorAll("#results > li:not([hidden]) .card")];

/** The list item of an answer. */
export const itemOf = (answer) => $("results").children[found.indexOf(answer)] || null;

$("weaker").addEventListener("click", () => {
  const folded = [...document.querySelectorAll("#results > li[hidden]")];
  folded.forEach((item) => {
    item.hidden = false;
    strip(item, found[[...$("results").children].indexOf(item)], shown);
  });
  $("weaker").setAttribute("aria-expanded", "true");
  $("weaker").hidden = true;
  folded[0]?.querySelector(".card").focus();
});

function card(answer, place, { words, calibrated }) {
  const item = $("result").content.cloneNode(true).firstElementChild;
  const one = (name) => item.querySelector(name);
  const [from, to] = [clock(answer.start), clock(answer.end)];
  Object.assign(item.dataset, { start: answer.start, end: answer.end, video: answer.video });
  one(".name").textContent = answer.video;
  if (answer.partial) {
    const mark = document.createElement("span");
    mark.className = "partial quiet";
    mark.textContent = " (in part)";
    mark.title = `this film could be read only in part: ${answer.partial.read_seconds.toFixed(1)} s`;
    one(".name").append(mark);
  }
  const percent = Math.round(answer.probability * 100);
  one(".chance").append(calibrated ? `${percent} %` : meter(answer.probability));
  one(".chance").title = calibrated ? "how likely this answers the question" : "how strong it is beside the others";
  one(".time").textContent = `${from} – ${to}`;
  one(".rank").textContent = `Moment ${place + 1}:`;
  because(one(".because"), answer, words);
  explain(one(".words"), answer);
  if (answer.concepts.length && !answer.because?.length) {
    one(".seen").textContent = `recognised: ${answer.concepts.slice(0, 3).map((seen) => seen.concept).join(", ")}`;
  } else {
    one(".seen").remove();
  }
  if (answer.playable) {
    one("img").src = `${path(answer.video)}/thumbnail?width=320&at=${((answer.start + answer.end) / 2).toFixed(1)}`;
    // A film that has gone since it was found.
    one("img").addEventListener("error", () => one("img").remove(), { once: true });
  } else {
    one("img").remove();
  }
  draw(one("svg"), answer, null);
  one(".verdicts").setAttribute("aria-label", `Is answer ${place + 1} right?`);
  return item;
}

function meter(value) {
  const bar = document.createElement("span");
  bar.className = "meter";
  bar.append(document.createElement("span"));
  bar.firstElementChild.style.width = `${Math.round(100 * value)}%`;
  return bar;
}

/** Why: what is said, written or seen there. */
function because(place, answer, words) {
  // An encoder that recognises nothing by name has nothing to say for what it saw: the words below do.
  const reasons = (answer.because || []).filter(({ text }) => text).slice(0, 3);
  if (!reasons.length) place.remove();
  for (const { track, text, start } of reasons) {
    const line = document.createElement("span");
    const kind = document.createElement("b");
    kind.textContent = `${track}: `;
    line.append(kind, ...marked(text, words));
    if (start !== undefined && track !== "seen") line.append(` (${clock(start)})`);
    place.append(line);
  }
}

function explain(place, answer) {
  for (const [number, word] of answer.words.slice(0, 4).entries()) {
    const text = document.createElement(number === 0 ? "b" : "span");
    text.textContent = word.word;
    if (number) place.append(" · ");
    place.append(text);
  }
  if (!answer.words.length) place.remove();
}

/** Asks where along the film the question scores high. */
function strip(item, answer, query) {
  if (!query) return;
  ask(`${path(answer.video)}/strip?${new URLSearchParams({ q: query })}`)
    .then((body) => draw(item.querySelector("svg"), answer, body.strip), () => {});
}

/** Where along the film the question scores high, and where this answer lies. */
function draw(svg, answer, strip) {
  const bar = (kind, x, y, width, height) => {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ class: kind, x, y, width, height })) rect.setAttribute(name, value);
    return rect;
  };
  const parts = [bar("base", 0, 8.4, 64, 1.6)];
  const most = Math.max(0.05, ...(strip || []));
  (strip || []).forEach((value, place) => {
    const height = (8 * value) / most;
    parts.push(bar("bar", place + 0.1, 8.2 - height, 0.8, height));
  });
  const scale = 64 / Math.max(answer.duration, 0.001);
  parts.push(bar("here", answer.start * scale, 8.4, Math.max((answer.end - answer.start) * scale, 0.7), 1.6));
  svg.replaceChildren(...parts);
}
