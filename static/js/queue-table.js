// The live queue tree: rows with a key, patched cell by cell. Rows never jump on an update.

import { Folding } from "./queue-folding.js";
import { patchRow } from "./queue-row.js";
import { isFound, readSearch } from "./queue-search.js";
import { watchSelection } from "./selection.js";
import { watchPath, watchWidth } from "./tree-tools.js";

const IN_FIELDS = "select, textarea, input:not([type=checkbox])";
const ONLY_ON_ROW = [" ", "Enter"]; // inside the row they belong to links and boxes

export function startQueueTree(live) {
  const tree = document.getElementById("queue-tree");
  if (!tree) return;
  const table = new QueueTable(tree, document.getElementById("queue-row"));
  live.follow(tree.dataset.topic, (message) => table.take(message));
  followPinned(live);
  watchSelection(tree, table);
  watchPath(tree, document.getElementById("tree-path"), (row) => table.focusOn(row));
  watchWidth(tree);
}

/** The pinned queues are a small table of the same rows. */
function followPinned(live) {
  const pinned = document.getElementById("pinned-queues");
  if (!pinned) return;
  const table = new QueueTable(pinned, document.getElementById("queue-row"));
  live.follow(pinned.dataset.topic, (message) => table.take(message));
}

class QueueTable {
  #rows = new Map(); // name -> element

  constructor(table, template) {
    this.table = table;
    this.body = table.tBodies[0];
    this.template = template;
    this.isTree = table.dataset.view === "tree";
    this.onlyParent = table.dataset.onlyParent; // a table of one queue's children takes no others
    this.onlyNames = namesIn(table.dataset.onlyNames); // nor does one of certain queues
    this.isSorted = (table.dataset.sort ?? "name") !== "name";
    this.folding = new Folding(table.dataset);
    this.query = table.dataset.query || "";
    this.terms = []; // what is searched for; null after a search that the server refused
    this.problems = [];
    for (const element of this.body.rows) this.#rows.set(element.dataset.key, element);
    this.#readQuery();
    if (this.problems.length) this.terms = null;
    this.#show();
    table.addEventListener("click", (event) => this.#clicked(event));
    table.addEventListener("keydown", (event) => this.#keyed(event));
    this.#keepInTabOrder(this.body.rows[0]);
  }

  /** Take a snapshot or a delta. */
  take({ type, rows, gone }) {
    const isSnapshot = type === "snapshot";
    const mine = rows.filter((row) => this.#belongs(row));
    const moved = mine.filter((row) => this.#put(row, !isSnapshot));
    const left = isSnapshot ? this.#missing(mine) : [...gone, ...this.#movedAway(rows)];
    for (const name of left) this.#remove(name);
    if (moved.length || left.length) this.#arrange();
    else if (this.isSearching) this.#show(); // a row may have come to match, or ceased to
  }

  /** Show only what is asked for, and in a tree what leads there. */
  filter(query) {
    this.query = query.trim();
    this.#readQuery();
    this.#show();
  }

  openLevels(levels) {
    this.folding.openLevels(levels);
    this.#show();
  }

  /** The rows that are asked for themselves, without those that only lead there. */
  get found() {
    const elements = [...this.#rows.values()];
    return elements.filter((element) => !element.hidden && !("way" in element.dataset));
  }

  get isSearching() {
    return this.terms?.length !== 0;
  }

  get size() {
    return this.#rows.size;
  }

  /** Bring a row to the top of what is in sight, and the keyboard to it. */
  focusOn(element) {
    element?.scrollIntoView({ block: "start" });
    this.#focusRow(element);
  }

  focusFirst() {
    this.#focusRow(this.#visibleRows()[0]);
  }

  toggle(element, open = element.getAttribute("aria-expanded") === "false") {
    const isParent = element.hasAttribute("aria-expanded");
    if (!isParent || this.isSearching) return; // a search shows what it finds, folded or not
    this.folding.toggle(element, open);
    this.#show();
  }

  /** A word that is still being typed asks for nothing; the server refuses one that was sent. */
  #readQuery() {
    const names = new Set([...this.#rows.keys()].map((name) => name.toLowerCase()));
    const { terms, problems } = readSearch(this.query, names);
    this.terms = terms;
    this.problems = problems;
  }

  #belongs(row) {
    if (this.onlyNames && !this.onlyNames.has(row.key)) return false;
    return this.onlyParent === undefined || row.parent === this.onlyParent;
  }

  /** Rows of this table that hang below another queue now. */
  #movedAway(rows) {
    const away = rows.filter((row) => this.#rows.has(row.key) && !this.#belongs(row));
    return away.map((row) => row.key);
  }

  #missing(rows) {
    const names = new Set(rows.map((row) => row.key));
    return [...this.#rows.keys()].filter((name) => !names.has(name));
  }

  /** Gives whether the row is new or hangs elsewhere now. */
  #put(row, flash) {
    const known = this.#rows.get(row.key);
    const element = known ?? this.template.content.firstElementChild.cloneNode(true);
    const level = this.isTree ? row.depth + 1 : this.#flatLevel(row);
    const isMoved = !known || isElsewhere(element, row.parent, level);
    this.#rows.set(row.key, element);
    patchRow(element, row, { level, flash, isNew: !known });
    return isMoved;
  }

  /** Rows of one queue's children and pinned rows stand side by side. */
  #flatLevel(row) {
    const isSmall = this.onlyParent !== undefined || this.table.id === "pinned-queues";
    return isSmall ? 1 : row.depth + 1;
  }

  #remove(name) {
    const element = this.#rows.get(name);
    if (!element) return;
    if (element.contains(document.activeElement)) this.#step(element, 1);
    element.remove();
    this.#rows.delete(name);
  }

  /** A flat table keeps the order it was sorted in; new rows come last. */
  #arrange() {
    if (this.isTree) this.#arrangeTree();
    else this.#appendNew();
    this.#show();
  }

  #appendNew() {
    for (const element of this.#rows.values()) {
      if (!element.isConnected) this.body.append(element);
    }
  }

  /** Put every row where it belongs in the tree; rows that are there already are not touched. */
  #arrangeTree() {
    const children = this.#namesByParent();
    let place = this.body.firstElementChild;
    const visit = (name) => {
      const element = this.#rows.get(name);
      if (element === place) place = place.nextElementSibling;
      else this.body.insertBefore(element, place);
      this.#inOrder(children.get(name)).forEach(visit);
    };
    this.#inOrder(children.get("")).forEach(visit);
  }

  /** A tree that was sorted by a figure keeps its order; new rows come last. */
  #inOrder(names = []) {
    return this.isSorted ? names : names.sort();
  }

  #namesByParent() {
    const children = new Map();
    for (const [name, element] of this.#rows) {
      const parent = this.#parentOf(element) ? element.dataset.parent : "";
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(name);
    }
    return children;
  }

  /** Hide what folds hide; while something is searched for, what is not asked for. */
  #show() {
    const search = this.isSearching ? this.#search() : null;
    const closed = new Set(); // folded, or below a row that is
    for (const element of this.body.rows) {
      const { key, parent } = element.dataset;
      const isFolded = this.isTree && this.folding.isFolded(element);
      const isBelow = this.isTree && closed.has(parent);
      if (isFolded || isBelow) closed.add(key);
      if (search) showFound(element, search);
      else showFolded(element, isBelow, isFolded);
    }
    this.table.dispatchEvent(new Event("shown"));
  }

  /** The names that are asked for, and those that lead to them. */
  #search() {
    const found = new Set();
    const ways = new Set();
    for (const [name, element] of this.#rows) {
      if (this.#isFound(element)) found.add(name);
    }
    if (!this.isTree) return { found, ways };
    for (const name of found) this.#addWay(name, found, ways);
    return { found, ways };
  }

  #isFound(element) {
    return this.terms && isFound(element, this.terms, (row) => this.#namesAbove(row));
  }

  #addWay(name, found, ways) {
    let at = this.#parentOf(this.#rows.get(name));
    while (at && !ways.has(at.dataset.key)) {
      if (!found.has(at.dataset.key)) ways.add(at.dataset.key);
      at = this.#parentOf(at);
    }
  }

  /** The row's own name first, in small letters. A tree that is not valid may go in circles. */
  #namesAbove(element) {
    const names = [];
    let at = element;
    while (at && !names.includes(at.dataset.key.toLowerCase())) {
      names.push(at.dataset.key.toLowerCase());
      at = this.#parentOf(at);
    }
    return names;
  }

  #parentOf(element) {
    return this.#rows.get(element.dataset.parent);
  }

  #clicked(event) {
    const element = event.target.closest("tbody tr");
    if (!element) return;
    this.#keepInTabOrder(element);
    if (event.target.closest(".twisty")) this.toggle(element);
  }

  #keyed(event) {
    const element = event.target.closest("tbody tr");
    const isChord = event.ctrlKey || event.metaKey || event.altKey;
    if (!element || isChord || event.target.matches(IN_FIELDS)) return;
    if (ONLY_ON_ROW.includes(event.key) && event.target !== element) return;
    const act = this.#actions(element)[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #actions(element) {
    return {
      ArrowDown: () => this.#step(element, 1),
      ArrowUp: () => this.#step(element, -1),
      ArrowRight: () => this.#stepIn(element),
      ArrowLeft: () => this.#stepOut(element),
      Home: () => this.#focusRow(this.body.rows[0]),
      End: () => this.#focusRow(this.#visibleRows().at(-1)),
      Enter: () => element.querySelector(".c-name a").click(),
      " ": () => element.querySelector("input[type=checkbox]")?.click(),
      ".": () => element.querySelector(".row-act")?.click(),
    };
  }

  #stepIn(element) {
    if (element.getAttribute("aria-expanded") === "false") this.toggle(element, true);
    else this.#step(element, 1);
  }

  #stepOut(element) {
    if (element.getAttribute("aria-expanded") === "true") this.toggle(element, false);
    else this.#focusRow(this.#parentOf(element));
  }

  #step(element, by) {
    let next = element;
    do next = by > 0 ? next?.nextElementSibling : next?.previousElementSibling;
    while (next?.hidden);
    this.#focusRow(next);
  }

  #visibleRows() {
    return [...this.body.rows].filter((row) => !row.hidden);
  }

  #focusRow(element) {
    if (!element) return;
    this.#keepInTabOrder(element);
    element.focus();
  }

  /** One row is in the tab order; the arrows do the rest. */
  #keepInTabOrder(element) {
    const before = this.table.querySelector('tr[tabindex="0"]');
    if (!element || before === element) return; // to take it from the focused row would blur it
    before?.removeAttribute("tabindex");
    element.tabIndex = 0;
  }
}

function namesIn(text) {
  return text === undefined ? null : new Set(text.split(" "));
}

function isElsewhere(element, parent, level) {
  return element.dataset.parent !== parent || element.getAttribute("aria-level") !== String(level);
}

function showFound(element, { found, ways }) {
  const { key } = element.dataset;
  const isShown = found.has(key) || ways.has(key);
  setHidden(element, !isShown);
  if (ways.has(key)) element.dataset.way = "";
  else delete element.dataset.way;
  setExpanded(element, isShown);
}

function showFolded(element, isBelow, isFolded) {
  setHidden(element, isBelow);
  delete element.dataset.way;
  setExpanded(element, !isFolded);
}

function setHidden(element, isHidden) {
  if (element.hidden !== isHidden) element.hidden = isHidden;
}

/** Leaves of the tree have nothing to expand. */
function setExpanded(element, isExpanded) {
  if (!element.hasAttribute("aria-expanded")) return;
  element.setAttribute("aria-expanded", String(isExpanded));
}
