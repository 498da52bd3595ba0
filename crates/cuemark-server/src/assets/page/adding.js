// Adding a folder of films while the page is open: a job of the server, watched as it goes on.

import { ask, root } from "./api.js";

const $ = (id) => document.getElementById(id);
let job = null; // the number of the job that is watched
let events = null;
let finished = () => {};

/** Calls `told()` when films have been added. */
export function whenFinished(told) {
  finished = told;
}

/** Takes up a job that somebody has started already. */
export async function resume() {
  const { jobs } = await ask(`${root}/jobs`);
  const running = jobs.find(({ phase }) => !isOver(phase));
  if (running && running.id !== job) watch(running);
}

const isOver = (phase) => ["finished", "stopped", "failed"].includes(phase);

function watch(state) {
  events?.close();
  job = state.id;
  $("job").hidden = false;
  paint(state);
  events = new EventSource(`${root}/jobs/${state.id}/events`);
  events.addEventListener("job", (event) => {
    const told = JSON.parse(event.data);
    paint(told);
    // A stream that has ended would be asked for again, for ever.
    if (isOver(told.phase)) over(told);
  });
  // The browser tries again by itself unless the server is another one by now, which has no such job.
  events.addEventListener("error", () => {
    if (events?.readyState === EventSource.CLOSED) {
      over({ phase: "failed", error: "the server has forgotten this job", new: 0, changed: 0, unchanged: 0, failed: [] });
    }
  });
}

function over(state) {
  events?.close();
  [events, job] = [null, null];
  $("job").hidden = true;
  const counts = [`${state.new} new`, state.changed && `${state.changed} changed`,
    state.unchanged && `${state.unchanged} were there`, state.partial && `${state.partial} read in part`];
  const told = { finished: "Done", stopped: "Stopped", failed: `Failed: ${state.error}` }[state.phase];
  const left = state.failed?.length ? `. Left out: ${state.failed.join("; ")}` : "";
  $("add-status").textContent = `${told}: ${counts.filter(Boolean).join(", ")}${left}`;
  finished();
}

function paint({ phase, done, total }) {
  const bar = $("job-bar");
  if (total > 0) {
    bar.value = done / total;
  } else {
    bar.removeAttribute("value");
  }
  $("job-text").textContent = phase === "settling"
    ? "Making the index fast again"
    : total > 0 ? `Adding films: ${done} of ${total}` : "Looking for films";
}

$("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const below = $("add-below").value.trim().replace(/^\/+/, "");
  const folder = $("add-folder").value;
  const tags = $("add-tags").value.split(",").map((tag) => tag.trim()).filter(Boolean);
  $("add-status").textContent = "";
  try {
    watch(await ask(`${root}/jobs`, { method: "POST", body: { paths: [below ? `${folder}/${below}` : folder], tags } }));
    $("add-status").textContent = "Adding; you may close this and search meanwhile.";
  } catch (problem) {
    $("add-status").textContent = problem.text || problem.message;
  }
});
$("job-stop").addEventListener("click", () => {
  if (job !== null) ask(`${root}/jobs/${job}`, { method: "DELETE" }).catch(() => {});
});
