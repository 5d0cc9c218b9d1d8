// What helps in a tree of a thousand queues: the way down to the first row in sight, and names as
// wide as one wants them.

import { element } from "./elements.js";

const WIDTH_KEY = "fumarole.name-width";
const STRIP_HEIGHT = 29; // of one line of it: what it covers is not in sight
const NARROWEST = 8; // in rem
const WIDEST = 60;

/** The ancestors of the first row in sight stay in sight, each a step back to its row. */
export function watchPath(table, strip, focusOn) {
  if (!strip) return;
  let frame = 0;
  const draw = () => {
    frame = 0;
    drawPath(table, strip, focusOn);
  };
  const drawSoon = () => {
    frame ||= requestAnimationFrame(draw);
  };
  addEventListener("scroll", drawSoon, { passive: true });
  addEventListener("resize", drawSoon);
  table.addEventListener("shown", drawSoon);
}

function drawPath(table, strip, focusOn) {
  const bar = document.querySelector(".topbar").getBoundingClientRect().bottom;
  const isHeadStuck = getComputedStyle(table.tHead).position === "sticky";
  const top = isHeadStuck ? bar + table.tHead.getBoundingClientRect().height : bar;
  const isScrolled = table.getBoundingClientRect().top < bar;
  const names = isScrolled ? namesAbove(table, firstRowBelow(table, top + STRIP_HEIGHT)) : [];
  strip.style.top = `${top}px`;
  strip.hidden = names.length === 0;
  const key = names.join(" ");
  if (strip.dataset.names === key) return;
  strip.dataset.names = key;
  const steps = names.map((name) => step(name, () => focusOn(rowOf(table, name))));
  strip.querySelector("ol").replaceChildren(...steps);
}

/** The first row that ends below this line. Rows stand in order, so it is found by halving. */
function firstRowBelow(table, line) {
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].getBoundingClientRect().bottom > line) high = middle;
    else low = middle + 1;
  }
  return rows[low];
}

function namesAbove(table, row) {
  const names = [];
  let at = row && rowOf(table, row.dataset.parent);
  while (at) {
    names.unshift(at.dataset.key);
    at = rowOf(table, at.dataset.parent);
  }
  return names;
}

function rowOf(table, name) {
  return name ? table.querySelector(`tr[data-key="${CSS.escape(name)}"]`) : null;
}

function step(name, act) {
  const button = element("button", name, { type: "button" });
  button.addEventListener("click", act);
  const item = document.createElement("li");
  item.append(button);
  return item;
}

/** The column of names is as wide as its edge is dragged, by pointer or by keys. */
export function watchWidth(table) {
  const edge = table.querySelector(".resize");
  if (edge) new NameWidth(table, edge);
}

/** Widths are in rem; this browser keeps the last. */
class NameWidth {
  constructor(table, edge) {
    this.table = table;
    this.edge = edge;
    edge.hidden = false;
    const kept = Number(localStorage.getItem(WIDTH_KEY));
    if (kept) this.#set(kept);
    else this.#tell();
    edge.addEventListener("pointerdown", (event) => this.#drag(event));
    edge.addEventListener("dblclick", () => this.#reset());
    edge.addEventListener("keydown", (event) => this.#keyed(event));
  }

  get #rem() {
    return parseFloat(getComputedStyle(document.documentElement).fontSize);
  }

  get #width() {
    return this.edge.closest("th").getBoundingClientRect().width / this.#rem;
  }

  #set(width) {
    const taken = Math.min(WIDEST, Math.max(NARROWEST, width));
    // The other columns keep the room that they need.
    this.table.style.setProperty("--name-wish", `minmax(${NARROWEST}rem, ${taken}rem)`);
    localStorage.setItem(WIDTH_KEY, String(taken));
    this.#tell();
    this.table.dispatchEvent(new Event("shown"));
  }

  #reset() {
    this.table.style.removeProperty("--name-wish");
    localStorage.removeItem(WIDTH_KEY);
    this.#tell();
  }

  #tell() {
    this.edge.setAttribute("aria-valuenow", String(Math.round(this.#width)));
  }

  #drag(event) {
    event.preventDefault();
    this.edge.setPointerCapture(event.pointerId);
    const from = this.#width * this.#rem - event.clientX;
    const move = ({ clientX }) => this.#set((from + clientX) / this.#rem);
    const stop = () => this.edge.removeEventListener("pointermove", move);
    this.edge.addEventListener("pointermove", move);
    this.edge.addEventListener("pointerup", stop, { once: true });
    this.edge.addEventListener("pointercancel", stop, { once: true });
  }

  #keyed(event) {
    const act = {
      ArrowRight: () => this.#set(this.#width + 1),
      ArrowLeft: () => this.#set(this.#width - 1),
      Home: () => this.#reset(),
      End: () => this.#set(WIDEST),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}
