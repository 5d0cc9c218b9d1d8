// The map of the cluster by keyboard: one cell is in the tab order, arrow keys move among them.
// Small cells show no text: the pointer is told their label.

const MOVES = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

export function watchNodeMap() {
  for (const map of document.querySelectorAll("[data-node-map]")) prepare(map);
  document.addEventListener("keydown", onKey);
  document.addEventListener("focusin", (event) => {
    const cell = event.target.closest?.("[data-node-map] .heat");
    if (cell) makeCurrent(cell);
  });
  document.addEventListener("pointerover", (event) => {
    const cell = event.target.closest?.("[data-node-map] .heat[aria-label]");
    if (cell) cell.title = cell.ariaLabel;
  });
  document.addEventListener("content", () => {
    for (const map of document.querySelectorAll("[data-node-map]")) prepare(map);
  });
}

/** A map that was drawn again keeps its place: the cell with the focus, else the first. */
function prepare(map) {
  const cells = [...map.querySelectorAll(".heat")];
  const current = cells.find((cell) => cell === document.activeElement) ?? cells[0];
  for (const cell of cells) cell.tabIndex = cell === current ? 0 : -1;
}

function makeCurrent(cell) {
  const before = cell.closest("[data-node-map]").querySelector('.heat[tabindex="0"]');
  if (before) before.tabIndex = -1;
  cell.tabIndex = 0;
}

function onKey(event) {
  const cell = event.target.closest?.("[data-node-map] .heat");
  if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
  const cells = [...cell.closest("[data-node-map]").querySelectorAll(".heat")];
  const next = target(cells, cell, event.key);
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function target(cells, cell, key) {
  if (key === "Home") return cells[0];
  if (key === "End") return cells.at(-1);
  const move = MOVES[key];
  if (!move) return null;
  const [across, down] = move;
  if (across) return cells[cells.indexOf(cell) + across];
  return nearestInNextRow(cells, cell, down);
}

/** Of the next row of cells, in this group or the next, the one that is nearest. */
function nearestInNextRow(cells, cell, down) {
  const here = cell.getBoundingClientRect();
  let best = null;
  for (const other of cells) {
    const there = other.getBoundingClientRect();
    const distance = (there.top - here.top) * down;
    if (distance <= 1) continue;
    const aside = Math.abs(there.left - here.left);
    const isNearer = !best || distance < best.distance - 1;
    const isSameRow = best && Math.abs(distance - best.distance) <= 1;
    if (isNearer || (isSameRow && aside < best.aside)) best = { other, distance, aside };
  }
  return best?.other;
}
