// Ticked rows, the search box and the levels of the queue tree; and the counts of them, which are right at every moment.

export function watchSelection(tree, table) {
  watchTicks(tree, table);
  watchSearch(tree, table);
  watchLevels(table);
}

const setText = (selector, text) => {
  for (const place of document.querySelectorAll(selector)) if (place.textContent !== text) place.textContent = text;
};

/** How many are ticked, among them those that can not be seen now; a queue that is deleted takes its tick with it. */
function watchTicks(tree, table) {
  const bar = document.getElementById("bulk");
  if (!bar) return;
  const unseen = bar.querySelector("[data-picked-unseen]");
  const pick = document.getElementById("pick-found");
  const update = () => {
    const picked = [...tree.querySelectorAll('input[name="queue"]:checked')];
    const away = picked.filter((box) => box.closest("tr").hidden).length;
    setText("[data-picked]", String(picked.length));
    bar.hidden = picked.length === 0;
    if (!unseen) return;
    unseen.hidden = away === 0;
    unseen.textContent = table.isSearching ? `${away} of them not in this search` : `${away} of them folded away`;
  };
  tree.addEventListener("change", update);
  tree.addEventListener("shown", update);
  bar.addEventListener("reset", () => setTimeout(update));
  document.getElementById("dialog")?.addEventListener("close", update);
  pick?.addEventListener("click", () => {
    for (const row of table.found) row.querySelector('input[name="queue"]').checked = true;
    update();
    bar.querySelector("button").focus();
  });
  update();
}

function watchSearch(tree, table) {
  const search = document.getElementById("search");
  if (!search || !tree.dataset.view || tree.dataset.onlyParent !== undefined) return;
  search.addEventListener("input", () => {
    const url = new URL(location.href);
    if (search.value) url.searchParams.set("q", search.value);
    else url.searchParams.delete("q");
    history.replaceState(null, "", url);
    table.filter(search.value);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") search.value = "", search.dispatchEvent(new Event("input")), search.blur();
    else if (event.key === "ArrowDown") event.preventDefault(), table.focusFirst();
    else if (event.key === "Enter" && !table.problems.length) event.preventDefault(), table.focusFirst(); // what the server would say is there already
  });
  document.getElementById("search-problems").dataset.words = table.problems.join(" "); // the server has said it, in its own words
  tree.addEventListener("shown", () => tellSearch(table));
  tellCounts(table);
}

function tellSearch(table) {
  tellCounts(table);
  const said = document.getElementById("search-problems");
  const words = table.problems.join(" ");
  if (said.dataset.words !== words) said.replaceChildren(...(words ? [hint(words)] : []));
  said.dataset.words = words;
}

function hint(words) {
  return Object.assign(document.createElement("p"), { className: "banner", textContent: words });
}

function tellCounts(table) {
  const found = table.found.length;
  const isTold = table.isSearching && !table.problems.length;
  setText("[data-live-count]", String(table.size));
  setText("[data-found]", String(found));
  setText("[data-query-text]", table.query);
  document.getElementById("found-note").hidden = !isTold;
  const pick = document.getElementById("pick-found");
  if (pick) pick.hidden = !isTold || found === 0;
  document.getElementById("no-match").hidden = !isTold || found > 0;
}

/** The links say the same to who has no script; here the tree folds where it stands, and stays so. */
function watchLevels(table) {
  const links = [...document.querySelectorAll("a[data-levels]")];
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      table.openLevels(Number(link.dataset.levels));
    });
  }
  table.table.addEventListener("shown", () => {
    for (const link of links) {
      if (Number(link.dataset.levels) === table.levels) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  });
}
