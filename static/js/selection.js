// Ticked rows, the search box and the levels of the queue tree, with counts that are right at every
// moment.

import { element, setText } from "./elements.js";

export function watchSelection(tree, table) {
  watchTicks(tree, table);
  watchSearch(tree, table);
  watchLevels(tree, table);
}

function setTexts(selector, text) {
  for (const place of document.querySelectorAll(selector)) setText(place, text);
}

/** A queue that is deleted takes its tick with it. */
function watchTicks(tree, table) {
  const bar = document.getElementById("bulk");
  if (!bar) return;
  const update = () => showTicks(tree, table, bar);
  tree.addEventListener("change", update);
  tree.addEventListener("shown", update);
  bar.addEventListener("reset", () => setTimeout(update));
  document.getElementById("dialog")?.addEventListener("close", update);
  document.getElementById("pick-found")?.addEventListener("click", () => {
    tickFound(table);
    update();
    bar.querySelector("button").focus();
  });
  update();
}

function tickFound(table) {
  for (const row of table.found) row.querySelector('input[name="queue"]').checked = true;
}

/** How many are ticked, and how many of them cannot be seen now. */
function showTicks(tree, table, bar) {
  const picked = [...tree.querySelectorAll('input[name="queue"]:checked')];
  const unseen = picked.filter((box) => box.closest("tr").hidden).length;
  const note = bar.querySelector("[data-picked-unseen]");
  setTexts("[data-picked]", String(picked.length));
  bar.hidden = picked.length === 0;
  if (!note) return;
  const why = table.isSearching ? "not in this search" : "folded away";
  note.hidden = unseen === 0;
  note.textContent = `${unseen} of them ${why}`;
}

function watchSearch(tree, table) {
  const search = document.getElementById("search");
  if (!search || !tree.dataset.view || tree.dataset.onlyParent !== undefined) return;
  const problems = document.getElementById("search-problems");
  problems.dataset.words = table.problems.join(" "); // the server has said it, in its own words
  search.addEventListener("input", () => {
    keepInAddress(search.value);
    table.filter(search.value);
  });
  search.addEventListener("keydown", (event) => searchKey(event, search, table));
  tree.addEventListener("shown", () => {
    tellCounts(table);
    tellProblems(problems, table.problems.join(" "));
  });
  tellCounts(table);
}

function keepInAddress(query) {
  const url = new URL(location.href);
  if (query) url.searchParams.set("q", query);
  else url.searchParams.delete("q");
  history.replaceState(null, "", url);
}

function searchKey(event, search, table) {
  const isComplete = event.key === "Enter" && !table.problems.length;
  if (event.key === "Escape") {
    search.value = "";
    search.dispatchEvent(new Event("input"));
    search.blur();
  } else if (event.key === "ArrowDown" || isComplete) {
    event.preventDefault(); // what the server would answer is here already
    table.focusFirst();
  }
}

function tellProblems(place, words) {
  if (place.dataset.words === words) return;
  place.dataset.words = words;
  const banners = words ? [element("p", words, { className: "banner" })] : [];
  place.replaceChildren(...banners);
}

function tellCounts(table) {
  const found = table.found.length;
  const isTold = table.isSearching && !table.problems.length;
  const pick = document.getElementById("pick-found");
  setTexts("[data-live-count]", String(table.size));
  setTexts("[data-found]", String(found));
  setTexts("[data-query-text]", table.query);
  document.getElementById("found-note").hidden = !isTold;
  document.getElementById("no-match").hidden = !isTold || found > 0;
  if (pick) pick.hidden = !isTold || found === 0;
}

/** Without a script the links do the same; here the tree folds where it stands. */
function watchLevels(tree, table) {
  const links = [...document.querySelectorAll("a[data-levels]")];
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      table.openLevels(Number(link.dataset.levels));
    });
  }
  tree.addEventListener("shown", () => {
    for (const link of links) markCurrent(link, table.folding.levels);
  });
}

function markCurrent(link, levels) {
  if (Number(link.dataset.levels) === levels) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
}
