// One page, no framework: what is in the address is what is shown, so every question and every moment can be shared as a link.
//
//   ?q=QUESTION&film=FILM&tag=TAG&track=said|written|seen    a question and where to look
//   ?like=FILM:START-END                                     moments like one
//   …&play=FILM#t=START,END                                  a moment in the player

import { ask, path, root } from "./page/api.js";
import * as adding from "./page/adding.js";
import * as cards from "./page/cards.js";
import * as ends from "./page/ends.js";
import * as films from "./page/films.js";
import * as judging from "./page/judging.js";
import * as player from "./page/player.js";
import { clock, fragment, parseFragment } from "./page/time.js";

const $ = (id) => document.getElementById(id);
const LIMIT = 24;
let running = null; // the request whose answer is awaited
let asked; // the address of the answers that are shown; null when nothing is asked
let wholeFilm = false; // whether the player shows a film rather than a moment

function say(text, isError = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", isError);
  $("again-ask").hidden = !isError;
}

// ---- asking

function verdict(body, what) {
  const unseen = (body.unseen ?? []).map(({ word, nearest }) => `${word} (nearest: ${nearest})`);
  const unknown = (body.unknown_words?.length ? ` · unknown: ${body.unknown_words.join(", ")}` : "")
    + (unseen.length ? ` · cannot see ${unseen.join(", ")}` : "");
  if (!body.answers.length) return `Nothing there to be found for ${what}${unknown}`;
  if (!body.good) return `Nothing good enough for ${what}${unknown}`;
  const moments = body.good === 1 ? "1 moment" : `${body.good} moments`;
  return `${moments} for ${what} · ${body.took_ms.toFixed(0)} ms${unknown}`;
}

async function find(url, query, what) {
  running?.abort();
  const mine = running = new AbortController();
  $("empty").hidden = true;
  $("results").classList.add("loading");
  $("results").setAttribute("aria-busy", "true");
  say("Looking…");
  try {
    const [body] = await Promise.all([ask(url, { signal: mine.signal }), judging.load(query)]);
    if (mine.signal.aborted) return;
    cards.show(body, { query, calibrated: films.about.calibrated, play: (answer) => play(answer) });
    // An index with tracks says why; then one may look at one of them alone.
    if (body.answers.some((answer) => answer.because)) $("track-filter").hidden = false;
    paintVerdicts();
    say(verdict(body, what));
    isBack();
  } catch (problem) {
    if (problem.name === "AbortError") return;
    cards.show({ answers: [], good: 0 }, { query, calibrated: false, play });
    say(problem.text || problem.message, true);
    if (problem.isLost) isLost();
  }
  $("results").classList.remove("loading");
  $("results").removeAttribute("aria-busy");
}

// Names may have commas, which the server takes as separators.
const one = (name) => name.replaceAll("\\", "\\\\").replaceAll(",", "\\,");

/** Shows what the address says; `again` asks once more although nothing has changed, and lets the player be. */
async function read({ again = false } = {}) {
  const params = new URLSearchParams(location.search);
  const get = (name) => (params.get(name) || "").trim();
  const [query, film, tag, track] = ["q", "film", "tag", "track"].map(get);
  const moment = /^(.*):([\d.]+)-([\d.]+)$/.exec(get("like"));
  $("q").value = query;
  choose($("film"), film);
  choose($("tag"), tag);
  document.querySelector(`#track-filter input[value="${["seen", "said", "written"].includes(track) ? track : ""}"]`).checked = true;
  if (track) $("track-filter").hidden = false;
  document.title = query ? `${query} · cuemark` : "cuemark";
  const wanted = { q: track ? `${track}:${query}` : query, limit: LIMIT };
  if (film) wanted.video = one(film);
  if (tag) wanted.tag = one(tag);
  const [url, what] = query
    ? [`${root}/search?${new URLSearchParams(wanted)}`, `“${query}”`]
    : moment
      ? [`${root}/moments/like?${new URLSearchParams({ video: moment[1], start: moment[2], end: moment[3], limit: LIMIT })}`,
        `moments like ${moment[1]} at ${clock(Number(moment[2]))}`]
      : [null, ""];
  if (url !== asked || again) {
    // A new question, a new page: the film of the last one is put away.
    if (url !== asked && player.playing) player.close();
    asked = url;
    if (url) {
      await find(url, query, what);
    } else {
      running?.abort();
      cards.show({ answers: [], good: 0 }, { query: "", calibrated: false, play });
      say("");
    }
  }
  $("empty").hidden = Boolean(url || get("play"));
  await playNamed(get("play"), query);
}

function choose(select, value) {
  // Kept even when the list does not have it: the server says what is wrong with it.
  if (value && ![...select.options].some((option) => option.value === value)) select.append(new Option(value, value));
  select.value = value;
}

/** Changes the address and shows it. */
function go(change, how = "pushState") {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(change)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  const text = params.toString();
  history[how](null, "", text ? `?${text}` : "/");
  return read();
}

// ---- playing

/** The address of a moment in the player. */
function addressOf({ video, start, end }) {
  const params = new URLSearchParams(location.search);
  params.set("play", video);
  return `?${params}${wholeFilm ? "" : fragment(start, end)}`;
}

function play(answer, { whole = false, muted = false } = {}) {
  wholeFilm = whole;
  document.querySelectorAll(".card[aria-current]").forEach((other) => other.removeAttribute("aria-current"));
  cards.itemOf(answer)?.querySelector(".card").setAttribute("aria-current", "true");
  history.replaceState(null, "", addressOf(answer));
  $("empty").hidden = true;
  player.open(answer, { query: $("q").value, whole, muted });
  paintPlayer();
  const kept = judging.of(answer)?.span;
  if (kept) {
    ends.put(kept);
    tellEnds(kept);
  }
  // Where the player stands above the list, it may be far above.
  $("player").scrollIntoView({ block: "nearest" });
}

/** Opens what a link names: one of the answers when it is among them. */
async function playNamed(video, query) {
  if (!video) {
    if (player.playing) player.close();
    return;
  }
  const times = parseFragment(location.hash);
  const now = player.playing;
  const near = (a, b) => Math.abs(a - b) < 0.002;
  if (now && now.video === video && (!times || (near(now.start, times[0]) && near(now.end, times[1])))) {
    const shown = cards.found.find((one) => one.video === video && near(one.start, now.start) && near(one.end, now.end));
    if (shown) cards.itemOf(shown).querySelector(".card").setAttribute("aria-current", "true");
    return;
  }
  const answer = times && cards.found.find((one) => one.video === video && near(one.start, times[0]) && near(one.end, times[1]));
  if (answer) {
    play(answer);
    return;
  }
  try {
    const film = await ask(path(video));
    const [start, end] = times || [0, null];
    const moment = {
      video, duration: film.duration, playable: film.playable && film.state === "present",
      start: Math.min(start, film.duration), end: Math.min(end ?? film.duration, film.duration),
    };
    play(moment, { whole: !times });
  } catch (problem) {
    say(problem.text || problem.message, true);
    if (problem.isLost) isLost();
  }
}

function closePlayer() {
  const card = document.querySelector(".card[aria-current]");
  player.close();
  go({ play: "" }, "replaceState");
  (card || $("q")).focus();
}

function like() {
  const now = player.playing;
  if (!now || wholeFilm) return;
  history.pushState(null, "", `?${new URLSearchParams({ like: `${now.video}:${now.start}-${now.end}` })}`);
  read();
}

async function copy() {
  const now = player.playing;
  if (!now) return;
  const [start, end] = ends.span() || [now.start, now.end];
  const link = new URL(addressOf({ ...now, start, end }), location.href).href;
  try {
    await navigator.clipboard.writeText(link);
    say("Copied a link to this moment");
  } catch {
    // Without permission, or on a plain address in a network, there is no clipboard.
    prompt("The link to this moment", link);
  }
}

// ---- judging

function paintVerdicts() {
  cards.found.forEach((answer) => judging.paint(cards.itemOf(answer).querySelector(".verdicts"), answer));
  paintPlayer();
}

function paintPlayer() {
  const group = document.querySelector("#player .verdicts");
  const now = player.playing;
  if (now && !wholeFilm) judging.paint(group, now);
  else group.hidden = true;
  $("ends-help").hidden = group.hidden;
}

/** Says of an answer what the button says, or takes it back when that was said already. */
async function judge(answer, verdict, span) {
  if (!answer || !judging.possible()) return;
  const again = judging.of(answer)?.verdict === verdict && !span;
  try {
    await judging.say(answer, again ? "none" : verdict, span);
    say(again ? "Taken back" : span ? "Kept, with these ends" : verdict === "right" ? "Kept as right" : "Kept as wrong");
    if (span) $("keep-ends").hidden = true;
  } catch (problem) {
    say(`Not kept: ${problem.text || problem.message}`, true);
    $("again-ask").hidden = true;
    if (problem.isLost) isLost();
  }
  paintVerdicts();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".verdicts button");
  if (!button) return;
  const item = button.closest("#results > li");
  const answer = item ? cards.found[[...$("results").children].indexOf(item)] : player.playing;
  judge(answer, button.classList.contains("right") ? "right" : "wrong");
});
$("keep-ends").addEventListener("click", () => judge(player.playing, "right", ends.span()));
ends.whenMoved((span, which) => {
  $("keep-ends").hidden = !judging.possible();
  tellEnds(span);
  player.look(span[which]);
});

function tellEnds([start, end]) {
  $("playing-span").textContent = `${clock(start)} – ${clock(end)}`;
}

// ---- a server that goes away and comes back

let waiting = null;

function isLost() {
  if (waiting !== null) return;
  $("lost").hidden = false;
  let pause = 1000;
  const again = async () => {
    try {
      await ask(`${root}/health`);
      isBack();
      start();
    } catch {
      pause = Math.min(2 * pause, 15_000);
      waiting = setTimeout(again, pause);
    }
  };
  waiting = setTimeout(again, pause);
  $("retry").onclick = () => { clearTimeout(waiting); again(); };
}

function isBack() {
  if (waiting === null) return;
  clearTimeout(waiting);
  waiting = null;
  $("lost").hidden = true;
}

// ---- what there is to be found

async function offer() {
  const { concepts, asked: right } = await ask(`${root}/offers`);
  const tags = films.about.tags.map(({ tag }) => tag);
  const all = [...new Set([...right, ...concepts])];
  $("offered").replaceChildren(...all.map((text) => new Option(text, text)));
  const chip = (text, change) => {
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    button.addEventListener("click", () => go(change));
    item.append(button);
    return item;
  };
  const names = [...document.querySelectorAll("#film option")].slice(1).map(({ value }) => value);
  const list = [
    ...all.slice(0, 18).map((text) => chip(text, { q: text })),
    ...tags.slice(0, 6).map((tag) => chip(`tag: ${tag}`, { tag })),
    // Where nothing is recognised by name, there are at least films to look at.
    ...(all.length ? [] : names.slice(0, 8).map((name) => chip(name, { play: name }))),
  ];
  $("offer-list").replaceChildren(...list);
  $("offers-title").textContent = all.length ? "This index can find, for example" : "In this index";
  $("offers").hidden = !list.length;
}

function emptiness() {
  const none = films.about.videos === 0;
  $("nothing").hidden = !none;
  $("nothing-text").textContent = films.about.folders.length
    ? "Open the list of films to add a folder."
    : "Add some with “cuemark index add INDEX FOLDER”; this page sees them within a second.";
}

async function start() {
  try {
    await films.load();
    judging.allow(films.about.judging);
    emptiness();
    isBack();
  } catch (problem) {
    say(problem.text || problem.message, true);
    if (problem.isLost) isLost();
  }
  offer().catch(() => {});
  adding.resume().catch(() => {});
  await read({ again: true });
}

// ---- the page's own controls

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  go({ q: $("q").value.trim(), like: "", play: "" });
});
$("film").addEventListener("change", () => go({ film: $("film").value, play: "" }));
$("tag").addEventListener("change", () => go({ tag: $("tag").value, play: "" }));
$("track-filter").addEventListener("change", (event) => go({ track: event.target.value, play: "" }));
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("again-ask").addEventListener("click", () => read({ again: true }));
$("again").addEventListener("click", () => player.playing && play(player.playing, { whole: wholeFilm }));
$("like").addEventListener("click", like);
$("copy").addEventListener("click", copy);
$("close").addEventListener("click", closePlayer);
addEventListener("popstate", () => read());
addEventListener("hashchange", () => read());
films.whenChosen((film) => go({ film: film.id, play: $("q").value ? "" : film.id }));
adding.whenFinished(async () => {
  await films.load();
  emptiness();
  offer().catch(() => {});
  await read({ again: true });
});
// Another tab may have judged, added or removed meanwhile.
addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "visible") return;
  judging.load($("q").value.trim()).then(paintVerdicts);
  adding.resume().catch(() => {});
});

addEventListener("keydown", (event) => {
  const at = event.target;
  const typing = at.matches?.("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const list = cards.visible();
  const here = list.indexOf(document.activeElement);
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const now = player.playing;
  if (key === "Escape") {
    if (now) closePlayer();
    else if (typing) at.blur();
  } else if (typing && at !== $("q")) {
    return;
  } else if (key === "/" && !typing) {
    event.preventDefault();
    $("q").focus();
    $("q").select();
  } else if ((key === "ArrowDown" || (key === "ArrowRight" && !typing)) && list.length && at !== $("video")) {
    event.preventDefault();
    list[Math.min(here + 1, list.length - 1)].focus();
  } else if ((key === "ArrowUp" || (key === "ArrowLeft" && !typing)) && here >= 0) {
    event.preventDefault();
    (list[here - 1] || $("q")).focus();
  } else if (!typing) {
    const chosen = here >= 0 ? cards.found[[...$("results").children].indexOf(list[here].closest("li"))] : now;
    const act = {
      r: () => now && play(now, { whole: wholeFilm }),
      l: like,
      c: copy,
      y: () => !(chosen === now && wholeFilm) && judge(chosen, "right"),
      n: () => !(chosen === now && wholeFilm) && judge(chosen, "wrong"),
      "[": () => now && ends.move(0, $("video").currentTime),
      "]": () => now && ends.move(1, $("video").currentTime),
    }[key];
    act?.();
  }
});

start();
