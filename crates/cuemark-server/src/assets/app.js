"use strict";
// One page, no framework: what is in the address is what is shown, so every question can be shared as a link.

const $ = (id) => document.getElementById(id);
const api = "/api/v1";
let running = null; // the request whose answer is awaited
let found = []; // answers as shown
let playing = null; // the answer in the player

const clock = (seconds) => {
  const tenths = Math.round(seconds * 10);
  const minutes = Math.floor(tenths / 600);
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  return minutes >= 60
    ? `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`
    : `${minutes}:${rest}`;
};
const path = (video) => `${api}/videos/${encodeURIComponent(video)}`;

async function get(url, signal) {
  const response = await fetch(url, { signal, headers: { Accept: "application/json" } });
  if (response.status === 401) {
    const token = prompt("This server wants a token");
    if (token) {
      document.cookie = `cuemark_token=${token}; SameSite=Strict; Path=/`;
      return get(url, signal);
    }
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) {
    const problem = new Error(body.detail || `the server answered ${response.status}`);
    problem.hint = body.hint;
    throw problem;
  }
  return body;
}

function say(text, isError = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", isError);
}

function verdict(body, what) {
  const unknown = body.unknown_words.length ? ` · unknown: ${body.unknown_words.join(", ")}` : "";
  if (!body.answers.length) return `Nothing there to be found for ${what}${unknown}`;
  if (!body.good) return `Nothing good enough for ${what}; the nearest are shown below${unknown}`;
  const moments = body.good === 1 ? "1 moment" : `${body.good} moments`;
  return `${moments} for ${what} · ${body.took_ms.toFixed(0)} ms${unknown}`;
}

async function ask(params, what) {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  $("empty").hidden = true;
  $("results").classList.add("loading");
  $("results").setAttribute("aria-busy", "true");
  say("Looking…");
  try {
    const body = await get(params, signal);
    show(body);
    say(verdict(body, what));
  } catch (error) {
    if (error.name === "AbortError") return;
    show({ answers: [], good: 0 });
    say(error.hint ? `${error.message}: ${error.hint}` : error.message, true);
  }
  $("results").classList.remove("loading");
  $("results").removeAttribute("aria-busy");
}

function show(body) {
  found = body.answers;
  $("results").replaceChildren(...found.map((answer, place) => card(answer, place, body.good)));
}

function card(answer, place, good) {
  const item = $("result").content.cloneNode(true).firstElementChild;
  const one = (name) => item.querySelector(name);
  const from = clock(answer.start);
  const to = clock(answer.end);
  item.classList.toggle("weak", place >= good);
  item.dataset.start = answer.start;
  item.dataset.end = answer.end;
  item.dataset.video = answer.video;
  one(".name").textContent = answer.video;
  if (answer.partial) {
    const mark = document.createElement("span");
    mark.className = "partial quiet";
    mark.textContent = " (in part)";
    mark.title = `this film could be read only in part: ${answer.partial.read_seconds.toFixed(1)} s`;
    one(".name").append(mark);
  }
  one(".chance").textContent = `${Math.round(answer.probability * 100)} %`;
  one(".chance").title = "how likely this answers the question";
  one(".time").textContent = `${from} – ${to}`;
  one(".card").setAttribute("aria-label",
    `${place + 1}: ${answer.video}, ${from} to ${to}, ${Math.round(answer.probability * 100)} percent likely`);
  for (const [number, word] of answer.words.slice(0, 4).entries()) {
    const text = document.createElement(number === 0 ? "b" : "span");
    text.textContent = word.word;
    if (number) one(".words").append(" · ");
    one(".words").append(text);
  }
  if (answer.concepts.length) {
    one(".seen").textContent = `recognised: ${answer.concepts.slice(0, 3).map((seen) => seen.concept).join(", ")}`;
  } else {
    one(".seen").remove();
  }
  if (answer.playable) {
    one("img").src = `${path(answer.video)}/thumbnail?width=320&at=${((answer.start + answer.end) / 2).toFixed(1)}`;
  } else {
    one("img").remove();
  }
  draw(one("svg"), answer, null);
  const query = new URLSearchParams(location.search).get("q");
  if (query) {
    get(`${path(answer.video)}/strip?${new URLSearchParams({ q: query })}`)
      .then((body) => draw(one("svg"), answer, body.strip), () => {});
  }
  one(".card").addEventListener("click", () => play(answer, one(".card")));
  return item;
}

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

function play(answer, button) {
  document.querySelectorAll(".card[aria-current]").forEach((other) => other.removeAttribute("aria-current"));
  button?.setAttribute("aria-current", "true");
  playing = answer;
  $("playing-name").textContent = answer.video;
  $("playing-span").textContent = `${clock(answer.start)} – ${clock(answer.end)}`;
  $("player").hidden = false;
  if (!answer.playable) {
    say("This video was indexed by its features: there is no file to play", true);
    return;
  }
  const video = $("video");
  const source = `${path(answer.video)}/media`;
  const begin = () => {
    video.currentTime = answer.start + 0.001;
    video.play().catch(() => {});
  };
  if (video.getAttribute("src") === source && video.readyState > 0) {
    begin();
  } else {
    video.src = source;
    video.addEventListener("loadedmetadata", begin, { once: true });
  }
}

function close() {
  $("video").pause();
  $("player").hidden = true;
  document.querySelector(".card[aria-current]")?.focus();
  playing = null;
}

function like() {
  if (!playing) return;
  const { video, start, end } = playing;
  history.pushState(null, "", `?${new URLSearchParams({ like: `${video}:${start}-${end}` })}`);
  read();
}

// Shows what the address says.
function read() {
  const params = new URLSearchParams(location.search);
  const query = (params.get("q") || "").trim();
  const moment = /^(.*):([\d.]+)-([\d.]+)$/.exec(params.get("like") || "");
  $("q").value = query;
  document.title = query ? `${query} · cuemark` : "cuemark";
  if (query) {
    ask(`${api}/search?${new URLSearchParams({ q: query, limit: 24 })}`, `“${query}”`);
  } else if (moment) {
    const [, video, start, end] = moment;
    ask(`${api}/moments/like?${new URLSearchParams({ video, start, end, limit: 24 })}`, `moments like ${video} at ${clock(+start)}`);
  } else {
    running?.abort();
    show({ answers: [], good: 0 });
    $("empty").hidden = false;
    say("");
  }
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = $("q").value.trim();
  history.pushState(null, "", query ? `?${new URLSearchParams({ q: query })}` : "/");
  read();
});
addEventListener("popstate", read);
$("again").addEventListener("click", () => playing && play(playing));
$("like").addEventListener("click", like);
$("close").addEventListener("click", close);
// A moment ends where it ends.
$("video").addEventListener("timeupdate", () => {
  if (playing && $("video").currentTime >= playing.end - 0.05 && !$("video").paused) {
    $("video").pause();
    $("video").currentTime = Math.max(playing.start, playing.end - 0.06);
  }
});
addEventListener("keydown", (event) => {
  const typing = event.target === $("q");
  const cards = [...document.querySelectorAll(".card")];
  const at = cards.indexOf(document.activeElement);
  if (event.key === "Escape") {
    if (!$("player").hidden) close();
    else if (typing) $("q").blur();
  } else if (event.key === "/" && !typing) {
    event.preventDefault();
    $("q").focus();
    $("q").select();
  } else if ((event.key === "ArrowDown" || (event.key === "ArrowRight" && !typing)) && cards.length && event.target !== $("video")) {
    event.preventDefault();
    cards[Math.min(at + 1, cards.length - 1)].focus();
  } else if ((event.key === "ArrowUp" || (event.key === "ArrowLeft" && !typing)) && at >= 0) {
    event.preventDefault();
    (cards[at - 1] || $("q")).focus();
  } else if (!typing && !event.ctrlKey && !event.metaKey && event.key.toLowerCase() === "r" && playing) {
    play(playing);
  } else if (!typing && !event.ctrlKey && !event.metaKey && event.key.toLowerCase() === "l" && playing) {
    like();
  }
});

get(`${api}/health`).then(
  (health) => { $("about").textContent = `${health.videos.toLocaleString()} videos · ${health.moments.toLocaleString()} moments`; },
  () => { $("about").textContent = ""; },
);
read();
