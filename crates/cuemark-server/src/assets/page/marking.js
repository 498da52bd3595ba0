// Which words of a text the question asks for.

/** The words that a question looks for: no tracks, no quotation marks, nothing that is not wanted, no little words. */
export function wanted(query) {
  const little = new Set("a an the of in on at to and or is are with his her their its".split(" "));
  const words = query
    .replace(/\b(said|written|seen):/gi, " ")
    .split(/\s+/)
    .filter((word) => !word.startsWith("-"))
    .flatMap((word) => word.toLowerCase().match(/[\p{L}\p{N}]+/gu) || []);
  return words.filter((word) => !little.has(word)).map(stem);
}

/** `dancing`, `dances` and `dance` are one word here. */
function stem(word) {
  if (word.length < 5) return word;
  return word.replace(/(ing|ed|es|s|e)$/, "");
}

/** `text` as nodes, with the wanted words marked. */
export function marked(text, words) {
  const nodes = [];
  let rest = 0;
  for (const found of text.matchAll(/[\p{L}\p{N}]+/gu)) {
    if (!words.includes(stem(found[0].toLowerCase()))) continue;
    nodes.push(text.slice(rest, found.index));
    const mark = document.createElement("mark");
    mark.textContent = found[0];
    nodes.push(mark);
    rest = found.index + found[0].length;
  }
  nodes.push(text.slice(rest));
  return nodes;
}
