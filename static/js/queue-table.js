// The live queue tree: keyed rows, patched cell by cell. Rows never jump on an update; a value that changed flashes once.

import { isFound, readSearch } from "./queue-search.js";

const BAR_PARTS = ["ask", "use", "borrow", "promise", "lend", "over", "guarantee", "deserved"]; // as dashboard/present/row_html.py draws them
const TELL_AFTER_MS = 400;

const ALL_LEVELS = 0;

const wordsOf = (text) => new Set((text || "").split(" ").filter(Boolean));

export class QueueTable {
  #rows = new Map(); // name -> {element, row, cells}

  constructor(table, template) {
    this.table = table;
    this.body = table.tBodies[0];
    this.template = template;
    this.isTree = table.dataset.view === "tree";
    this.onlyParent = table.dataset.onlyParent; // a table of one queue's children takes no others
    this.query = table.dataset.query || "";
    this.terms = []; // what is searched for; null after a search that the server refused
    this.problems = [];
    this.levels = Number(table.dataset.levels || ALL_LEVELS);
    this.folded = wordsOf(table.dataset.folded);
    this.unfolded = wordsOf(table.dataset.unfolded);
    for (const element of this.body.rows) this.#rows.set(element.dataset.key, { element, row: null, cells: null });
    if (this.#read().length) this.terms = null;
    this.#show();
    table.addEventListener("click", (event) => this.#clicked(event));
    table.addEventListener("keydown", (event) => this.#keyed(event));
    this.#roving(this.body.rows[0]);
  }

  /** Take a snapshot or a delta. */
  take({ type, rows, gone }) {
    const isSnapshot = type === "snapshot";
    let moved = false;
    const mine = rows.filter((row) => this.#belongs(row));
    for (const row of mine) moved = this.#put(row, !isSnapshot) || moved;
    const left = isSnapshot ? this.#missing(mine) : [...gone, ...this.#movedAway(rows)];
    for (const name of left) this.#remove(name);
    if (moved || left.length) this.#arrange();
    else if (this.isSearching) this.#show(); // what is asked for may have come true, or be over
  }

  #belongs(row) {
    return this.onlyParent === undefined || row.parent === this.onlyParent;
  }

  /** Show only what is asked for, and in a tree what leads there. */
  filter(query) {
    this.query = query.trim();
    this.#read();
    this.#show();
  }

  /** What is wrong with the search. A word that is still being typed asks for nothing; one that was sent is refused, by the server. */
  #read() {
    const { terms, problems } = readSearch(this.query, new Set([...this.#rows.keys()].map((name) => name.toLowerCase())));
    this.terms = terms;
    this.problems = problems;
    return problems;
  }

  /** Open so many levels; what was folded and unfolded by hand counts no more. */
  openLevels(levels) {
    this.levels = levels;
    this.folded.clear();
    this.unfolded.clear();
    this.#keepFolding();
    this.#show();
  }

  /** The rows that are asked for themselves, without those that only lead there. */
  get found() {
    return [...this.#rows.values()].map(({ element }) => element).filter((element) => !element.hidden && !("way" in element.dataset));
  }

  get isSearching() {
    return this.terms?.length !== 0;
  }

  get size() {
    return this.#rows.size;
  }

  /** Bring a row to the top of what is in sight, and the keys to it. */
  focusOn(element) {
    element?.scrollIntoView({ block: "start" });
    this.#focusRow(element);
  }

  focusFirst() {
    this.#focusRow([...this.body.rows].find((row) => !row.hidden));
  }

  #above(element) {
    const names = [];
    for (let at = element; at && !names.includes(at.dataset.key.toLowerCase()); at = this.#parentOf(at)) names.push(at.dataset.key.toLowerCase());
    return names;
  }

  /** Those that are asked for, and those that lead to them; null where all are. */
  #find() {
    if (!this.isSearching) return null;
    const found = new Set();
    const ways = new Set();
    for (const [name, { element }] of this.#rows) if (this.terms && isFound(element, this.terms, (row) => this.#above(row))) found.add(name);
    if (!this.isTree) return { found, ways };
    for (const name of found) {
      for (let at = this.#parentOf(this.#rows.get(name).element); at && !ways.has(at.dataset.key); at = this.#parentOf(at)) {
        if (!found.has(at.dataset.key)) ways.add(at.dataset.key);
      }
    }
    return { found, ways };
  }

  /** Rows of this table that hang below another queue now. */
  #movedAway(rows) {
    return rows.filter((row) => this.#rows.has(row.key) && !this.#belongs(row)).map((row) => row.key);
  }

  #missing(rows) {
    const names = new Set(rows.map((row) => row.key));
    return [...this.#rows.keys()].filter((name) => !names.has(name));
  }

  /** Returns whether the row is new or hangs elsewhere now. */
  #put(row, flash) {
    let entry = this.#rows.get(row.key);
    const isNew = !entry;
    if (isNew) {
      const element = this.template.content.firstElementChild.cloneNode(true);
      entry = { element, row: null, cells: null };
      this.#rows.set(row.key, entry);
    }
    if (this.onlyParent !== undefined) row = { ...row, depth: 0 };
    const moved = isNew || entry.element.dataset.parent !== row.parent || entry.element.getAttribute("aria-level") !== String(row.depth + 1);
    patchRow(entry, row, flash && !isNew);
    if (isNew && flash) flashOnce(entry.element);
    return moved;
  }

  #remove(name) {
    const entry = this.#rows.get(name);
    if (!entry) return;
    if (entry.element.contains(document.activeElement)) this.#step(entry.element, 1);
    entry.element.remove();
    this.#rows.delete(name);
  }

  /** Put every row where it belongs in the tree; those that are there already are not touched. */
  #arrange() {
    if (!this.isTree) return this.#append();
    const children = new Map();
    for (const [name, { element }] of this.#rows) {
      const parent = this.#rows.has(element.dataset.parent) ? element.dataset.parent : "";
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(name);
    }
    let place = this.body.firstElementChild;
    const visit = (name) => {
      const { element } = this.#rows.get(name);
      if (element === place) place = place.nextElementSibling;
      else this.body.insertBefore(element, place);
      (children.get(name) || []).sort().forEach(visit);
    };
    (children.get("") || []).sort().forEach(visit);
    this.#show();
  }

  /** A flat table keeps the order it was sorted in; what is new comes last. */
  #append() {
    for (const { element } of this.#rows.values()) if (!element.isConnected) this.body.append(element);
    this.#show();
  }

  #isFolded(element) {
    if (!element.hasAttribute("aria-expanded")) return false;
    const { key } = element.dataset;
    if (this.folded.has(key)) return true;
    return this.levels !== ALL_LEVELS && Number(element.getAttribute("aria-level")) >= this.levels && !this.unfolded.has(key);
  }

  /** Hide what folds hide; while something is searched for, what is not asked for. */
  #show() {
    const search = this.#find();
    const closed = new Set(); // folded, or below something that is
    for (const element of this.body.rows) {
      const { key, parent } = element.dataset;
      const isFolded = this.isTree && this.#isFolded(element);
      const isBelow = this.isTree && closed.has(parent);
      if (isFolded || isBelow) closed.add(key);
      const isHidden = search ? !search.found.has(key) && !search.ways.has(key) : isBelow;
      if (element.hidden !== isHidden) element.hidden = isHidden;
      if (search?.ways.has(key)) element.dataset.way = "";
      else delete element.dataset.way;
      if (element.hasAttribute("aria-expanded")) element.setAttribute("aria-expanded", String(search ? !isHidden : !isFolded));
    }
    this.table.dispatchEvent(new Event("shown"));
  }

  toggle(element, open = element.getAttribute("aria-expanded") === "false") {
    if (!element.hasAttribute("aria-expanded") || this.isSearching) return; // a search shows what it finds, however it is folded
    const { key } = element.dataset;
    (open ? this.folded : this.unfolded).delete(key);
    if (open === this.#isFolded(element)) (open ? this.unfolded : this.folded).add(key);
    this.#keepFolding();
    this.#show();
  }

  #keepFolding() {
    keepFolded(this.levels, this.folded, this.unfolded);
  }

  #clicked(event) {
    const element = event.target.closest("tbody tr");
    if (!element) return;
    this.#roving(element);
    if (event.target.closest(".twisty")) this.toggle(element);
  }

  #keyed(event) {
    const element = event.target.closest("tbody tr");
    if (!element || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select, textarea, input:not([type=checkbox])")) return;
    const act = {
      ArrowDown: () => this.#step(element, 1),
      ArrowUp: () => this.#step(element, -1),
      ArrowRight: () => (element.getAttribute("aria-expanded") === "false" ? this.toggle(element, true) : this.#step(element, 1)),
      ArrowLeft: () => (element.getAttribute("aria-expanded") === "true" ? this.toggle(element, false) : this.#focusRow(this.#parentOf(element))),
      Home: () => this.#focusRow(this.body.rows[0]),
      End: () => this.#focusRow([...this.body.rows].filter((row) => !row.hidden).at(-1)),
      Enter: () => event.target === element && element.querySelector(".c-name a").click(),
      " ": () => event.target === element && element.querySelector("input[type=checkbox]")?.click(),
      ".": () => element.querySelector(".row-act")?.click(),
    }[event.key];
    if (!act || ([" ", "Enter"].includes(event.key) && event.target !== element)) return;
    event.preventDefault();
    act();
  }

  #parentOf(element) {
    return this.#rows.get(element.dataset.parent)?.element;
  }

  #step(element, by) {
    let next = element;
    do next = by > 0 ? next?.nextElementSibling : next?.previousElementSibling;
    while (next?.hidden);
    this.#focusRow(next);
  }

  #focusRow(element) {
    if (!element) return;
    this.#roving(element);
    element.focus();
  }

  /** One row is in the tab order; the arrows do the rest. */
  #roving(element) {
    const before = this.table.querySelector('tr[tabindex="0"]');
    if (!element || before === element) return; // taking it away from the focused row would blur it
    before?.removeAttribute("tabindex");
    element.tabIndex = 0;
  }
}

function patchRow(entry, row, flash) {
  const { element } = entry;
  entry.cells ??= collect(element);
  const { cells } = entry;
  if (element.dataset.key !== row.key) {
    element.dataset.key = row.key;
    setText(cells.link, row.name);
    cells.link.href = `/queues/${encodeURIComponent(row.name)}/`;
    cells.actions.href = `/queues/${encodeURIComponent(row.name)}/actions/`;
    cells.actions.setAttribute("aria-label", `Actions for ${row.name}`);
    if (cells.box) {
      cells.box.value = row.name;
      cells.box.setAttribute("aria-label", `Select ${row.name}`);
    }
  }
  element.dataset.parent = row.parent;
  element.dataset.is = row.is.join(" ");
  element.setAttribute("aria-level", row.depth + 1);
  element.className = `level-${row.depth}`;
  if (row.leaf) element.removeAttribute("aria-expanded");
  else if (!element.hasAttribute("aria-expanded")) element.setAttribute("aria-expanded", "true");
  patchText(cells.state, row.state, flash);
  cells.state.dataset.state = row.state;
  patchText(cells.stateNote, row.stateNote, false);
  patchText(cells.weight, String(row.weight), flash);
  patchText(cells.running, String(row.subtree.running), flash);
  patchText(cells.waiting, String(row.subtree.pending + row.subtree.inqueue), flash);
  cells.warnings.hidden = row.warnings.length === 0;
  cells.warnings.title = row.warnings.join(" · ");
  setText(cells.warnings, String(row.warnings.length));
  for (const [resource, quota] of Object.entries(row.resources)) patchQuota(cells.resources.get(resource), quota, flash);
  entry.row = row;
}

function collect(element) {
  const cells = { link: element.querySelector(".c-name a"), actions: element.querySelector(".row-act"), box: element.querySelector("input[type=checkbox]"), resources: new Map() };
  for (const cell of element.querySelectorAll(".c-res")) {
    const found = { cell, svg: cell.querySelector("svg") };
    for (const place of cell.querySelectorAll("[data-f]")) found[place.dataset.f] = place;
    cells.resources.set(cell.dataset.r, found);
  }
  for (const cell of element.querySelectorAll("td[data-n]")) (cells.resources.get(cell.dataset.r).numbers ??= []).push([cell.dataset.n, cell.querySelector("[data-v]")]);
  for (const place of element.querySelectorAll("td:not(.c-res) [data-f]")) cells[place.dataset.f] = place;
  return cells;
}

export function patchQuota(cell, quota, flash) {
  if (!cell) return; // a resource that this page has no column for: it appears with the next load
  for (const field of ["text", "note", "deserved", "pending"]) if (cell[field]) patchText(cell[field], quota[field], flash);
  cell.cell.classList.toggle("nil", quota.allocated === "0" && quota.promised === "0" && quota.pending === "0");
  for (const [field, place] of cell.numbers || []) patchText(place, quota[field], flash);
  if (cell.svg.getAttribute("aria-label") === quota.label && cell.drawn === quota.bar.join()) return; // the label names the limit: with it the scale is the same
  cell.drawn = quota.bar.join();
  const isAbsolute = cell.svg.classList.contains("absolute");
  if (isAbsolute) cell.svg.setAttribute("viewBox", `0 0 ${quota.scale} 16`);
  cell.svg.setAttribute("aria-label", quota.label);
  cell.svg.classList.toggle("inherited", quota.limitFrom !== "");
  cell.svg.innerHTML = (isAbsolute ? TRACK : "") + BAR_PARTS.map((kind, part) => rectangle(kind, quota.bar[2 * part], quota.bar[2 * part + 1])).join("");
}

const TRACK = '<rect class="track" x="0" width="1000"></rect>';
const rectangle = (kind, x, width) => (width ? `<rect class="${kind}" x="${x}" width="${width}"></rect>` : "");

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function patchText(element, text, flash) {
  if (element.textContent === text) return;
  element.textContent = text;
  if (flash) flashOnce(element);
}

const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Nothing where it can not be seen: its animation would never end, and who waits for that end would wait with each change. */
function flashOnce(element) {
  if (still.matches || document.hidden || element.classList.contains("flash") || element.closest("[hidden]")) return;
  element.classList.add("flash");
  element.addEventListener("animationend", () => element.classList.remove("flash"), { once: true });
}

let telling = 0;

/** The server keeps what is folded, for this reader in every browser. If it is away the tree is folded until the next load. */
function keepFolded(levels, folded, unfolded) {
  clearTimeout(telling);
  telling = setTimeout(() => {
    const data = new FormData();
    data.set("csrfmiddlewaretoken", document.querySelector("[name=csrfmiddlewaretoken]").value);
    data.set("levels", levels);
    for (const name of folded) data.append("queue", name);
    for (const name of unfolded) data.append("unfolded", name);
    fetch("/queues/-/folded/", { method: "POST", body: data, keepalive: true }).catch(() => {});
  }, TELL_AFTER_MS);
}
