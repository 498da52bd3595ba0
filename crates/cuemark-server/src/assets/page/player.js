// The player: a moment plays to its end and stops there once; after that the film belongs to whoever watches.

import { ask, path } from "./api.js";
import * as ends from "./ends.js";
import * as lines from "./lines.js";
import { clock } from "./time.js";

const $ = (id) => document.getElementById(id);
const video = $("video");

/** The moment in the player: `{video, start, end, duration, playable}`; null when it is closed. */
export let playing = null;
let stopAt = null; // seconds at which to stop; null once it has stopped, or the viewer has gone elsewhere

/** Opens a moment and plays it. `whole` films are not stopped anywhere. */
export function open(moment, { query = "", whole = false, muted = false } = {}) {
  playing = moment;
  $("playing-name").textContent = moment.video;
  $("playing-span").textContent = whole ? "" : `${clock(moment.start)} – ${clock(moment.end)}`;
  $("player").hidden = false;
  document.body.classList.add("playing");
  $("broken").hidden = true;
  ends.show(whole ? null : moment);
  const stretch = new URLSearchParams({ start: moment.start.toFixed(3), end: moment.end.toFixed(3) });
  $("clip").hidden = whole || !moment.playable || moment.end - moment.start > 120;
  $("clip").href = `${path(moment.video)}/clip?${stretch}`;
  $("like").hidden = whole;
  $("again").hidden = !moment.playable;
  lines.show(moment.video, query, jump);
  if (!moment.playable) {
    unload();
    broken("This film was indexed by its features: there is no file to play");
    return;
  }
  // The browser may still have a film that has been removed meanwhile.
  ask(path(moment.video)).then(
    (film) => film.state === "present" || gone(moment, "its file has vanished"),
    (problem) => problem.status === 404 && gone(moment, problem.message),
  );
  const source = `${path(moment.video)}/media`;
  const begin = () => {
    if (playing !== moment) return;
    stopAt = whole ? null : moment.end;
    video.currentTime = moment.start + 0.001;
    video.muted = muted;
    video.play().catch(() => {});
  };
  if (video.getAttribute("src") === source && video.readyState > 0 && !video.error) {
    begin();
  } else {
    stopAt = null;
    video.src = source;
    video.addEventListener("loadedmetadata", begin, { once: true });
  }
}

/** Closes the player; the film is let go of. */
export function close() {
  playing = null;
  stopAt = null;
  video.pause();
  unload();
  lines.hide();
  $("player").hidden = true;
  document.body.classList.remove("playing");
}

function unload() {
  video.removeAttribute("src");
  video.load();
}

/** Goes to a second of the film, and plays on from there for as long as the viewer likes. */
export function jump(seconds) {
  stopAt = null;
  video.currentTime = seconds;
  video.play().catch(() => {});
}

/** Shows the picture at a second, without playing. */
export function look(seconds) {
  stopAt = null;
  video.pause();
  if (video.readyState > 0) video.currentTime = seconds;
}

function gone(moment, why) {
  if (playing !== moment) return;
  unload();
  broken(`This film cannot be played: ${why}`);
}

function broken(text) {
  $("broken").textContent = text;
  $("broken").hidden = false;
}

function watch() {
  lines.follow(video.currentTime);
  if (stopAt === null || video.paused || video.seeking) return;
  if (video.currentTime >= stopAt - 0.02) {
    stopAt = null;
    video.pause();
  }
}

// Pictures come oftener than news of the time; in a tab behind others only the latter comes.
function frame() {
  watch();
  if (stopAt !== null && !video.paused) requestAnimationFrame(frame);
}
video.addEventListener("timeupdate", watch);
video.addEventListener("playing", frame);
// Whoever goes elsewhere does not want to be stopped there.
video.addEventListener("seeking", () => {
  if (playing && stopAt !== null && (video.currentTime < playing.start - 0.3 || video.currentTime >= stopAt)) stopAt = null;
});
video.addEventListener("error", () => {
  const moment = playing;
  if (!moment || !video.getAttribute("src")) return;
  // The element does not say why; the server does.
  ask(path(moment.video)).then(
    () => fetch(video.src, { headers: { Range: "bytes=0-0" } }),
  ).then(async (response) => {
    const said = response.ok ? {} : await response.json().catch(() => ({}));
    if (playing === moment) {
      broken(said.detail
        ? `This film cannot be played: ${said.detail}`
        : "This browser cannot play this kind of file; the clip can be downloaded as MP4");
    }
  }, (problem) => {
    if (playing === moment) broken(`This film cannot be played: ${problem.message}`);
  });
});
