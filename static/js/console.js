// What every page starts: the live connection, its pill, and the live parts that this page has.

import "./dialog.js";
import { watchDrawer } from "./drawer.js";
import { guardLeaving, watchForm } from "./form.js";
import { listenToKeys } from "./keys.js";
import { live } from "./live.js";
import { followParts } from "./parts.js";
import { watchPickers } from "./picker.js";
import { showConnection } from "./pill.js";
import { QueueTable } from "./queue-table.js";
import { watchSelection } from "./selection.js";
import { followCluster } from "./site.js";
import { keepTimes } from "./times.js";
import { showFigures } from "./tooltip.js";
import { watchPath, watchWidth } from "./tree-tools.js";

const pill = document.getElementById("pill");
if (pill) showConnection(live, pill);

const tree = document.getElementById("queue-tree");
if (tree) {
  const table = new QueueTable(tree, document.getElementById("queue-row"));
  live.follow(tree.dataset.topic, (message) => table.take(message));
  watchSelection(tree, table);
  watchPath(tree, document.getElementById("tree-path"), (row) => table.focusOn(row));
  watchWidth(tree);
}

followParts();
followCluster();
keepTimes();
listenToKeys();
showFigures();
watchForm(document.getElementById("queue-form"));
guardLeaving();
watchPickers();
document.addEventListener("content", (event) => watchPickers(event.detail));
watchDrawer();
if (document.getElementById("history")) import("./history.js").then(({ startHistory }) => startHistory());

// On a phone the tabs and the bottom bar are wider than the page: where one is must be in sight.
for (const here of document.querySelectorAll(".tabs [aria-current], .rail [aria-current]")) {
  const strip = here.closest(".tabs, .rail");
  strip.scrollLeft = here.offsetLeft - (strip.clientWidth - here.offsetWidth) / 2;
}

document.addEventListener("click", async (event) => {
  for (const menu of document.querySelectorAll("details.menu[open], details.legend[open]")) if (!menu.contains(event.target)) menu.open = false;
  const copy = event.target.closest("[data-copy]");
  if (!copy) return;
  await navigator.clipboard.writeText(document.querySelector(copy.dataset.copy).textContent);
  copy.dataset.words ??= copy.textContent; // a second click finds "Copied" there
  copy.textContent = "Copied";
  setTimeout(() => (copy.textContent = copy.dataset.words), 1500);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open], details.legend[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
