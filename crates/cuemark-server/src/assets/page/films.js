// The films of the index: a list, and what the question may be held to.

import { ask, path, root } from "./api.js";
import { clock } from "./time.js";

const $ = (id) => document.getElementById(id);
const MOST = 1000; // films that are listed

/** What the index is, as the server says it. */
export let about = { videos: 0, moments: 0, calibrated: false, tags: [], folders: [], judging: false };
let films = [];
let total = 0;
let watch = () => {};

/** Calls `chosen(film)` when a film of the list is chosen. */
export function whenChosen(chosen) {
  watch = chosen;
}

/** Asks the server what there is. */
export async function load() {
  const [index, list] = await Promise.all([ask(`${root}/about`), ask(`${root}/videos?limit=${MOST}`)]);
  about = index;
  ({ videos: films, total } = list);
  const option = (value, text) => Object.assign(document.createElement("option"), { value, textContent: text });
  refill($("film"), [option("", "all films"), ...films.map(({ id }) => option(id, id))]);
  refill($("tag"), [option("", "any tag"), ...about.tags.map(({ tag, videos }) => option(tag, `${tag} (${videos})`))]);
  $("tag-filter").hidden = !about.tags.length;
  $("filters").hidden = films.length < 2 && !about.tags.length;
  $("open-films").textContent = about.videos === 1 ? "1 film" : `${about.videos.toLocaleString()} films`;
  $("add").hidden = !about.folders.length;
  $("cannot-add").hidden = about.folders.length > 0;
  refill($("add-folder"), about.folders.map((folder) => option(folder, folder)));
  paint();
}

function refill(select, options) {
  const before = select.value;
  select.replaceChildren(...options);
  if ([...select.options].some(({ value }) => value === before)) select.value = before;
}

/** One film of the list. */
export const named = (id) => films.find((film) => film.id === id);

function paint() {
  const part = $("film-search").value.trim().toLowerCase();
  const shown = films.filter(({ id, tags }) => [id, ...tags].some((text) => text.toLowerCase().includes(part)));
  $("films-count").textContent = shown.length < total ? `${shown.length} of ${total.toLocaleString()} films` : "";
  $("film-list").replaceChildren(...shown.slice(0, 200).map(row));
}

function row(film) {
  const item = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button" });
  const text = Object.assign(document.createElement("span"), { className: "film" });
  const name = Object.assign(document.createElement("b"), { textContent: film.id });
  const state = film.state === "vanished" ? "its file has vanished" : film.partial ? "read in part" : film.playable ? "" : "no file to play";
  const told = [clock(film.duration), ...film.tags, state].filter(Boolean).join(" · ");
  const more = Object.assign(document.createElement("span"), { className: "quiet", textContent: told });
  text.append(name, more);
  if (film.playable && film.state === "present") {
    const picture = Object.assign(document.createElement("img"), {
      alt: "", loading: "lazy", width: 96, height: 54,
      src: `${path(film.id)}/thumbnail?width=192&at=${(film.duration / 2).toFixed(1)}`,
    });
    picture.addEventListener("error", () => { picture.removeAttribute("src"); }, { once: true });
    button.append(picture);
  }
  button.append(text);
  button.addEventListener("click", () => {
    $("films").close();
    watch(film);
  });
  item.append(button);
  return item;
}

$("film-search").addEventListener("input", paint);
$("open-films").addEventListener("click", () => $("films").showModal());
$("close-films").addEventListener("click", () => $("films").close());
