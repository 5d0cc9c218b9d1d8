// A bar's figures as a small table beside the pointer. For those who do not point, the bar's label
// says the same.

import { element } from "./elements.js";

const FIGURES = ["allocated", "promised", "deserved", "guarantee", "capability", "pending"];
const GAP = 6; // between the bar and its figures
const MARGIN = 8; // to the edges of the window
const BELOW_TOPBAR = 60;

const tip = element("div", "", { className: "tip", hidden: true, ariaHidden: "true" });

export function showFigures() {
  document.body.append(tip);
  document.addEventListener("pointerover", onPointer);
  addEventListener("scroll", hide, { passive: true, capture: true });
}

function onPointer(event) {
  const bar = event.target.closest?.("svg[data-figures]");
  if (bar) show(bar);
  else hide();
}

function hide() {
  tip.hidden = true;
}

/** data-figures is a title, a text for each figure or nothing, and remarks. */
function show(bar) {
  const [title, ...texts] = bar.dataset.figures.split("|");
  const figures = texts.slice(0, FIGURES.length);
  const remarks = texts.slice(FIGURES.length);
  tip.replaceChildren(
    element("strong", title),
    table(figures),
    ...remarks.map((words) => element("span", words)),
  );
  tip.hidden = false;
  place(bar.getBoundingClientRect());
}

function table(figures) {
  const made = document.createElement("table");
  figures.forEach((text, which) => {
    if (text) made.insertRow().append(element("th", FIGURES[which]), element("td", text));
  });
  return made;
}

function place(box) {
  const { offsetWidth, offsetHeight } = tip;
  const rightmost = innerWidth - offsetWidth - MARGIN;
  const above = box.top - offsetHeight - GAP;
  const top = above > BELOW_TOPBAR ? above : box.bottom + GAP;
  tip.style.left = `${Math.max(MARGIN, Math.min(box.left, rightmost))}px`;
  tip.style.top = `${top}px`;
}
