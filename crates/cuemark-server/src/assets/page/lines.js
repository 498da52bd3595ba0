// What is said and written in the film that plays; a click goes there.

import { ask, path } from "./api.js";
import { marked, wanted } from "./marking.js";
import { clock } from "./time.js";

const $ = (id) => document.getElementById(id);
let film = null;
let rows = []; // [{start, end, item}]

/** Shows the lines of a film with the question's words marked; hides itself when there are none. */
export async function show(video, query, jump) {
  const words = wanted(query);
  film = video;
  hideList();
  let body;
  try {
    body = await ask(`${path(video)}/lines`);
  } catch {
    return; // an index without tracks, or a server without them
  }
  if (film !== video || !body.lines?.length) return;
  rows = body.lines.map((line) => ({ ...line, item: row(line, words, jump) }));
  $("line-list").replaceChildren(...rows.map(({ item }) => item));
  $("lines").hidden = false;
  $("line-list").querySelector("mark")?.closest("li").scrollIntoView({ block: "nearest" });
}

/** Nothing is shown any more. */
export function hide() {
  film = null;
  hideList();
}

function hideList() {
  rows = [];
  $("lines").hidden = true;
  $("line-list").replaceChildren();
}

/** Marks the line at a second of the film. */
export function follow(seconds) {
  for (const { start, end, item } of rows) {
    const now = start <= seconds && seconds < end;
    if (item.hasAttribute("aria-current") === now) continue;
    if (now) item.setAttribute("aria-current", "true");
    else item.removeAttribute("aria-current");
  }
}

function row(line, words, jump) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  const [time, kind, text] = ["span", "span", "span"].map((name) => document.createElement(name));
  [time.className, kind.className, text.className] = ["at", `track ${line.track}`, "said"];
  time.textContent = clock(line.start);
  kind.textContent = line.track;
  text.append(...marked(line.text, words));
  button.append(time, " ", kind, " ", text);
  button.addEventListener("click", () => jump(line.start));
  item.append(button);
  return item;
}
