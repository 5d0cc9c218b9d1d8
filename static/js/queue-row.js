// One row of the queue tree: the server's values put into the row's cells. A value that changed
// flashes once.

import { setText } from "./elements.js";

const isStill = matchMedia("(prefers-reduced-motion: reduce)");
const placesOf = new WeakMap(); // row -> its cells, found once

export function patchRow(element, row, { level, flash, isNew }) {
  if (!placesOf.has(element)) placesOf.set(element, places(element));
  const cells = placesOf.get(element);
  const flashes = flash && !isNew;
  if (element.dataset.key !== row.key) nameRow(element, cells, row);
  placeInTree(element, row, level);
  patchFigures(cells, row, flashes);
  for (const [resource, quota] of Object.entries(row.resources)) {
    const cell = cells.resources.get(resource);
    if (cell) patchQuota(cell, quota, flashes); // others get a column with the next load
  }
  if (isNew && flash) flashOnce(element);
}

function places(element) {
  const cells = {
    link: element.querySelector(".c-name a"),
    actions: element.querySelector(".row-act"),
    box: element.querySelector("input[type=checkbox]"),
    texts: [...element.querySelectorAll("[data-text]")],
    resources: new Map(),
  };
  for (const place of element.querySelectorAll("td:not(.c-res) [data-f]")) {
    cells[place.dataset.f] = place;
  }
  for (const cell of element.querySelectorAll(".c-res")) {
    cells.resources.set(cell.dataset.r, placesOfQuota(cell));
  }
  for (const cell of element.querySelectorAll("td[data-n]")) {
    const { numbers } = cells.resources.get(cell.dataset.r);
    numbers.push({ field: cell.dataset.n, place: cell.querySelector("[data-v]") });
  }
  return cells;
}

function placesOfQuota(cell) {
  const found = { cell, svg: cell.querySelector("svg"), drawn: "", texts: [], numbers: [] };
  for (const place of cell.querySelectorAll("[data-f]")) {
    found.texts.push({ field: place.dataset.f, place });
  }
  return found;
}

function nameRow(element, cells, { key, name }) {
  const address = `/queues/${encodeURIComponent(name)}/`;
  element.dataset.key = key;
  setText(cells.link, name);
  cells.link.href = address;
  cells.actions.href = `${address}actions/`;
  cells.actions.ariaLabel = `Actions for ${name}`;
  if (!cells.box) return;
  cells.box.value = name;
  cells.box.ariaLabel = `Select ${name}`;
}

function placeInTree(element, row, level) {
  element.dataset.parent = row.parent;
  element.dataset.is = row.is.join(" ");
  element.setAttribute("aria-level", level);
  element.className = `level-${level - 1}`;
  const isExpandable = element.hasAttribute("aria-expanded");
  if (row.leaf) element.removeAttribute("aria-expanded");
  else if (!isExpandable) element.setAttribute("aria-expanded", "true");
}

function patchFigures(cells, row, flash) {
  patchText(cells.state, row.state, flash);
  cells.state.dataset.state = row.state;
  patchText(cells.stateNote, row.stateNote, false);
  patchText(cells.weight, String(row.weight), flash);
  for (const place of cells.texts) patchText(place, row[place.dataset.text], flash);
  patchText(cells.running, String(row.subtree.running), flash);
  patchText(cells.waiting, String(row.subtree.pending + row.subtree.inqueue), flash);
  cells.warnings.hidden = row.warnings.length === 0;
  cells.warnings.title = row.warnings.join(" · ");
  setText(cells.warnings, String(row.warnings.length));
}

function patchQuota(cell, quota, flash) {
  for (const { field, place } of [...cell.texts, ...cell.numbers]) {
    patchText(place, quota[field], flash);
  }
  const isIdle = [quota.allocated, quota.promised, quota.pending].every((text) => text === "0");
  cell.cell.classList.toggle("nil", isIdle);
  const drawn = [quota.label, quota.scale, quota.bar].join();
  if (cell.drawn === drawn) return;
  cell.drawn = drawn;
  patchBar(cell.svg, quota);
}

/** The server draws the bar; here it is put in. */
function patchBar(svg, quota) {
  if (svg.classList.contains("absolute")) svg.setAttribute("viewBox", `0 0 ${quota.scale} 16`);
  svg.classList.toggle("inherited", quota.limitFrom !== "");
  svg.setAttribute("aria-label", quota.label);
  svg.dataset.figures = quota.figures;
  svg.querySelector("g").innerHTML = quota.bar;
}

function patchText(place, text, flash) {
  if (place.textContent === text) return;
  place.textContent = text;
  if (flash) flashOnce(place);
}

/** Not where it cannot be seen: there the animation would never end, nor the waiting for it. */
function flashOnce(element) {
  const isUnseen = document.hidden || element.closest("[hidden]");
  if (isStill.matches || isUnseen || element.classList.contains("flash")) return;
  element.classList.add("flash");
  const stop = () => element.classList.remove("flash");
  element.addEventListener("animationend", stop, { once: true });
}
