// Ticked rows and the search box of the queue tree.

export function watchSelection(tree, table) {
  const bar = document.getElementById("bulk");
  const search = document.getElementById("search");
  if (bar) {
    const count = bar.querySelector("[data-picked]");
    const update = () => {
      const picked = tree.querySelectorAll('input[name="queue"]:checked').length;
      count.textContent = String(picked);
      bar.hidden = picked === 0;
    };
    tree.addEventListener("change", update);
    bar.addEventListener("reset", () => setTimeout(update));
    document.getElementById("dialog")?.addEventListener("close", update);
    update();
  }
  if (!search || !tree.dataset.view) return;
  search.addEventListener("input", () => {
    const url = new URL(location.href);
    if (search.value) url.searchParams.set("q", search.value);
    else url.searchParams.delete("q");
    history.replaceState(null, "", url);
    if (!tree.dataset.query) table.filter(search.value); // a page that came filtered holds only what it found: it has to be asked again
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") search.value = "", search.dispatchEvent(new Event("input")), search.blur();
    else if (event.key === "ArrowDown") event.preventDefault(), table.focusFirst();
  });
}
