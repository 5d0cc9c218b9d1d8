// The live queue tree: rows with a key, patched cell by cell. Rows never jump on an update.

import { Folding } from "./queue-folding.js";
import { HeldRows } from "./queue-held.js";
import { patchRow } from "./queue-row.js";
import { factsOfElement, isFound, readSearch } from "./queue-search.js";
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
  #held = new HeldRows(); // those that nobody has seen yet

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
    this.count = Number(table.dataset.count ?? this.#rows.size);
    this.isComplete = this.count === this.#rows.size;
    this.#readQuery();
    if (this.problems.length) this.terms = null;
    this.#show();
    table.addEventListener("click", (event) => this.#clicked(event));
    table.addEventListener("keydown", (event) => this.#keyed(event));
  }

  /** Take a snapshot or a delta. */
  take({ type, rows, gone }) {
    const isSnapshot = type === "snapshot";
    const mine = rows.filter((row) => this.#belongs(row));
    const moved = mine.filter((row) => this.#put(row, !isSnapshot));
    const left = isSnapshot ? this.#missing(mine) : [...gone, ...this.#movedAway(rows)];
    for (const name of left) this.#remove(name);
    if (isSnapshot && !this.isComplete) this.#becomeComplete();
    if (moved.length || left.length) this.#arrange();
    else if (this.isSearching) this.#show(); // a row may have come to match, or ceased to
  }

  /** Show only what is asked for, and in a tree what leads there. */
  filter(query) {
    this.query = query.trim();
    this.#readQuery();
    this.#show();
    this.#askForAll();
  }

  openLevels(levels) {
    this.folding.openLevels(levels);
    this.#show();
    this.#askForAll();
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
    return this.isComplete ? this.#rows.size + this.#held.size : this.count;
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
    this.#askForAll();
  }

  /** The page comes with the rows that it shows, and the live connection gives the others. Who
   * cannot wait for it, or has none, gets them here.
   */
  async #askForAll() {
    if (this.isComplete || this.isAsking) return;
    this.isAsking = true;
    try {
      const answer = await fetch("/queues/-/rows.json");
      const { rows } = await answer.json();
      if (!this.isComplete) this.take({ type: "snapshot", rows, gone: [] });
    } catch {
      // The server is away: the live connection brings them when it is back.
    }
    this.isAsking = false;
  }

  #becomeComplete() {
    this.isComplete = true;
    if (this.terms) this.#readQuery(); // now it is known which names there are
  }

  /** A word that is still being typed asks for nothing; the server refuses one that was sent. */
  #readQuery() {
    const names = this.isComplete ? this.#namesInSmallLetters() : null;
    const { terms, problems } = readSearch(this.query, names);
    this.terms = terms;
    this.problems = problems;
  }

  #namesInSmallLetters() {
    const names = [...this.#rows.keys(), ...this.#held.names()];
    return new Set(names.map((name) => name.toLowerCase()));
  }

  #belongs(row) {
    if (this.onlyNames && !this.onlyNames.has(row.key)) return false;
    return this.onlyParent === undefined || row.parent === this.onlyParent;
  }

  /** Rows of this table that hang below another queue now. */
  #movedAway(rows) {
    const isHere = (name) => this.#rows.has(name) || this.#held.has(name);
    const away = rows.filter((row) => isHere(row.key) && !this.#belongs(row));
    return away.map((row) => row.key);
  }

  #missing(rows) {
    const names = new Set(rows.map((row) => row.key));
    return [...this.#rows.keys(), ...this.#held.names()].filter((name) => !names.has(name));
  }

  /** Gives whether the row is new or hangs elsewhere now. */
  #put(row, flash) {
    const element = this.#rows.get(row.key);
    if (!element) return this.#held.put(row, flash);
    const level = this.#levelOf(row);
    const isMoved = isElsewhere(element, row.parent, level);
    patchRow(element, row, { level, flash, isNew: false });
    return isMoved;
  }

  #levelOf(row) {
    return this.isTree ? row.depth + 1 : this.#flatLevel(row);
  }

  /** Make elements of the rows that are shown now, and put them in their places. */
  #takeOut(search) {
    const above = this.#heldAboveElements();
    const isTaken = (row) => above.has(row.key) || this.#isToBeShown(row, search);
    const taken = this.#held.take(isTaken);
    for (const { row, flash } of taken) {
      const element = this.template.content.firstElementChild.cloneNode(true);
      this.#rows.set(row.key, element);
      patchRow(element, row, { level: this.#levelOf(row), flash, isNew: true });
    }
    if (taken.length) this.#placeRows();
  }

  /** A queue that moved keeps its element, and so its new parents need theirs. */
  #heldAboveElements() {
    const names = new Set();
    for (const element of this.#rows.values()) {
      let at = element.dataset.parent;
      while (this.#held.has(at) && !names.has(at)) {
        names.add(at);
        at = this.#held.get(at).parent;
      }
    }
    return names;
  }

  #isToBeShown({ key, parent }, search) {
    if (search) return search.found.has(key) || search.ways.has(key);
    return !this.isTree || !this.#isFoldedAbove(parent);
  }

  #isFoldedAbove(name) {
    const seen = new Set(); // a tree that is not valid may go in circles
    let at = name;
    while (at && !seen.has(at)) {
      if (this.#isFoldedRow(at)) return true;
      seen.add(at);
      at = this.#rows.get(at)?.dataset.parent ?? this.#held.get(at)?.parent;
    }
    return false;
  }

  #isFoldedRow(name) {
    const element = this.#rows.get(name);
    if (element) return this.folding.isFolded(element);
    const row = this.#held.get(name);
    return Boolean(row) && !row.leaf && this.folding.isFoldedAt(name, row.depth + 1);
  }

  #factsOf(name) {
    const element = this.#rows.get(name);
    return element ? factsOfElement(element) : this.#held.factsOf(name);
  }

  /** Rows of one queue's children and pinned rows stand side by side. */
  #flatLevel(row) {
    const isSmall = this.onlyParent !== undefined || this.table.id === "pinned-queues";
    return isSmall ? 1 : row.depth + 1;
  }

  #remove(name) {
    this.#held.remove(name);
    const element = this.#rows.get(name);
    if (!element) return;
    if (element.contains(document.activeElement)) this.#step(element, 1);
    element.remove();
    this.#rows.delete(name);
  }

  /** A flat table keeps the order it was sorted in; new rows come last. */
  #arrange() {
    this.#placeRows();
    this.#show();
  }

  #placeRows() {
    if (this.isTree) this.#arrangeTree();
    else this.#appendNew();
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
    this.#takeOut(search);
    const closed = new Set(); // folded, or below a row that is
    for (const element of this.body.rows) {
      const { key, parent } = element.dataset;
      const isFolded = this.isTree && this.folding.isFolded(element);
      const isBelow = this.isTree && closed.has(parent);
      if (isFolded || isBelow) closed.add(key);
      if (search) showFound(element, search);
      else showFolded(element, isBelow, isFolded);
    }
    this.#keepShownInTabOrder();
    this.table.dispatchEvent(new Event("shown"));
  }

  /** The names that are asked for, and those that lead to them. */
  #search() {
    const found = new Set();
    const ways = new Set();
    for (const name of [...this.#rows.keys(), ...this.#held.names()]) {
      if (this.#isFound(name)) found.add(name);
    }
    if (!this.isTree) return { found, ways };
    for (const name of found) this.#addWay(name, found, ways);
    return { found, ways };
  }

  #isFound(name) {
    return this.terms && isFound(this.#factsOf(name), this.terms, (facts) => this.#above(facts));
  }

  #addWay(name, found, ways) {
    const seen = new Set(); // a tree that is not valid may go in circles
    let at = this.#factsOf(this.#factsOf(name).parent);
    while (at && !ways.has(at.key) && !seen.has(at.key)) {
      seen.add(at.key);
      if (!found.has(at.key)) ways.add(at.key);
      at = this.#factsOf(at.parent);
    }
  }

  /** The queue's own name first, in small letters. A tree that is not valid may go in circles. */
  #above(facts) {
    const names = [];
    let at = facts;
    while (at && !names.includes(at.key.toLowerCase())) {
      names.push(at.key.toLowerCase());
      at = this.#factsOf(at.parent);
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

  #keepShownInTabOrder() {
    const element = this.#inTabOrder();
    if (!element || element.hidden) this.#keepInTabOrder(this.#visibleRows()[0]);
  }

  #inTabOrder() {
    return this.table.querySelector('tr[tabindex="0"]');
  }

  /** One row is in the tab order; the arrows do the rest. */
  #keepInTabOrder(element) {
    const before = this.#inTabOrder();
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
