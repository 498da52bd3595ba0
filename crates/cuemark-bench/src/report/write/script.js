"use strict";
// Sorts a table by the column whose heading was pressed: first the larger numbers, words by the alphabet, then the other way.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.querySelectorAll("thead th")];
  headings.forEach((heading, column) => {
    const button = heading.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const body = table.tBodies[0];
      const rows = [...body.rows];
      const key = (row) => {
        const cell = row.cells[column];
        const value = cell && cell.dataset.value;
        return value === undefined ? (cell ? cell.textContent.trim() : "") : Number(value);
      };
      const numbers = rows.every((row) => typeof key(row) === "number");
      const before = heading.getAttribute("aria-sort");
      const first = numbers ? "descending" : "ascending";
      const order = before === first ? (numbers ? "ascending" : "descending") : first;
      const sign = order === "ascending" ? 1 : -1;
      const compare = (a, b) => numbers ? key(a) - key(b) : String(key(a)).localeCompare(String(key(b)));
      rows.sort((a, b) => sign * compare(a, b));
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order);
      body.append(...rows);
    });
  });
}
// Plays a film from the second that a button names to the second where the span ends.
for (const figure of document.querySelectorAll("figure.example[data-film]")) {
  const film = figure.querySelector("video");
  let end = Infinity;
  for (const button of figure.querySelectorAll("button[data-from]")) {
    button.addEventListener("click", () => {
      const start = Number(button.dataset.from);
      end = Math.max(Number(button.dataset.to), start + 0.5);
      film.currentTime = start;
      film.play().catch(() => {});
    });
  }
  film.addEventListener("timeupdate", () => {
    if (film.currentTime >= end && !film.paused) { film.pause(); end = Infinity; }
  });
}
