// What helps in a tree of a thousand queues: the way down to the first row in sight, and names as wide as one wants them.

const WIDTH_KEY = "fumarole.name-width";
const STRIP_HEIGHT = 29; // of one line of it: what lies under it is not in sight
const NARROWEST = 8;
const WIDEST = 60;

/** The ancestors of the first row in sight stay in sight, each a step back to its row. */
export function watchPath(table, strip, focusOn) {
  if (!strip) return;
  const list = strip.querySelector("ol");
  let shown = "";
  let asked = 0;

  const draw = () => {
    asked = 0;
    const head = table.tHead.getBoundingClientRect();
    const isHeadStuck = getComputedStyle(table.tHead).position === "sticky";
    const bar = document.querySelector(".topbar").getBoundingClientRect().bottom;
    strip.style.top = `${bar + (isHeadStuck ? head.height : 0)}px`;
    const names = table.getBoundingClientRect().top < bar ? wayTo(firstBelow(bar + (isHeadStuck ? head.height : 0) + STRIP_HEIGHT)) : [];
    const key = names.join(" ");
    strip.hidden = names.length === 0;
    if (key === shown) return;
    shown = key;
    list.replaceChildren(...names.map(step));
  };

  /** The first row whose foot lies below this line. They stand in order, so it is found by halving. */
  const firstBelow = (line) => {
    const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].getBoundingClientRect().bottom > line) high = middle;
      else low = middle + 1;
    }
    return rows[low];
  };

  const wayTo = (row) => {
    const names = [];
    for (let at = row && rowOf(row.dataset.parent); at; at = rowOf(at.dataset.parent)) names.unshift(at.dataset.key);
    return names;
  };

  const rowOf = (name) => (name ? table.querySelector(`tr[data-key="${CSS.escape(name)}"]`) : null);

  const step = (name) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
    button.addEventListener("click", () => focusOn(rowOf(name)));
    const item = document.createElement("li");
    item.append(button);
    return item;
  };

  const soon = () => (asked ||= requestAnimationFrame(draw));
  addEventListener("scroll", soon, { passive: true });
  addEventListener("resize", soon);
  table.addEventListener("shown", soon);
}

/** The column of names takes the width that its edge is dragged to, by pointer or by keys; this browser keeps it. */
export function watchWidth(table) {
  const edge = table.querySelector(".resize");
  if (!edge) return;
  const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);
  const now = () => edge.closest("th").getBoundingClientRect().width / rem();
  const set = (width) => {
    const taken = Math.min(WIDEST, Math.max(NARROWEST, width));
    table.style.setProperty("--name-wish", `minmax(${NARROWEST}rem, ${taken}rem)`); // the other columns keep the room they need
    edge.setAttribute("aria-valuenow", String(Math.round(now())));
    localStorage.setItem(WIDTH_KEY, String(taken));
    table.dispatchEvent(new Event("shown"));
  };
  const reset = () => {
    table.style.removeProperty("--name-wish");
    localStorage.removeItem(WIDTH_KEY);
    edge.setAttribute("aria-valuenow", String(Math.round(now())));
  };

  edge.hidden = false;
  const kept = Number(localStorage.getItem(WIDTH_KEY));
  if (kept) set(kept);
  else edge.setAttribute("aria-valuenow", String(Math.round(now())));
  edge.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    edge.setPointerCapture(event.pointerId);
    const from = now() * rem() - event.clientX;
    const drag = (move) => set((from + move.clientX) / rem());
    edge.addEventListener("pointermove", drag);
    edge.addEventListener("pointerup", () => edge.removeEventListener("pointermove", drag), { once: true });
    edge.addEventListener("pointercancel", () => edge.removeEventListener("pointermove", drag), { once: true });
  });
  edge.addEventListener("dblclick", reset);
  edge.addEventListener("keydown", (event) => {
    const act = { ArrowRight: () => set(now() + 1), ArrowLeft: () => set(now() - 1), Home: reset, End: () => set(WIDEST) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
