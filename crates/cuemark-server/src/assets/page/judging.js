// Right or wrong: kept by the server, shown on the cards and in the player.

import { ask, root } from "./api.js";

let query = "";
let kept = new Map(); // what counts, by answer
let allowed = false;

const key = ({ video, start, end }) => JSON.stringify([video, start, end]);

/** Whether this server keeps judgements at all. */
export function allow(yes) {
  allowed = yes;
}

/** What was said of an answer: `{verdict, span}` or undefined. */
export const of = (answer) => kept.get(key(answer));

/** Whether answers to the question that is shown can be judged. */
export const possible = () => allowed && Boolean(query);

/** Takes up another question: what was said of its answers, perhaps in another tab. */
export async function load(asked) {
  if (asked !== query) kept = new Map();
  query = asked;
  if (!possible()) return;
  const body = await ask(`${root}/judged?${new URLSearchParams({ q: asked })}`).catch(() => null);
  if (body && asked === query) kept = new Map(body.judged.map((one) => [key(one), one]));
}

/** Says of an answer that it is `right`, `wrong`, or takes that back (`none`). */
export async function say(answer, verdict, span) {
  const { video, start, end } = answer;
  const body = { query, video, start, end, verdict };
  if (verdict === "right" && span) body.span = span;
  const asked = query;
  let said;
  try {
    said = await ask(`${root}/judged`, { method: "POST", body });
  } catch (problem) {
    // A server that cannot keep anything is not asked again.
    if (["not-kept", "full", "forbidden"].includes(problem.kind)) allowed = false;
    throw problem;
  }
  if (asked !== query) return;
  if (verdict === "none") kept.delete(key(answer));
  else kept.set(key(answer), said);
}

/** Shows in a pair of buttons what was said. */
export function paint(group, answer) {
  group.hidden = !possible();
  const verdict = of(answer)?.verdict;
  group.querySelector(".right").setAttribute("aria-pressed", String(verdict === "right"));
  group.querySelector(".wrong").setAttribute("aria-pressed", String(verdict === "wrong"));
}
