// Menus, buttons that copy, and strips of tabs: small manners that every page has.

const OPEN_MENUS = "details.menu[open], details.legend[open]";
const COPIED_MS = 1500;

export function watchMenus() {
  document.addEventListener("click", closeOtherMenus);
  document.addEventListener("keydown", closeMenusOnEscape);
}

function closeOtherMenus(event) {
  for (const menu of document.querySelectorAll(OPEN_MENUS)) {
    if (!menu.contains(event.target)) menu.open = false;
  }
}

function closeMenusOnEscape(event) {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll(OPEN_MENUS)) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
}

/** A button with data-copy copies the text of the element that it names. */
export function watchCopyButtons() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copyFor(button);
  });
}

async function copyFor(button) {
  await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
  button.dataset.words ??= button.textContent; // a second click finds "Copied" there
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = button.dataset.words), COPIED_MS);
}

/** On a phone the tabs and the bottom bar are wider than the page: the present one is in sight. */
export function showPresentTabs() {
  for (const here of document.querySelectorAll(".tabs [aria-current], .rail [aria-current]")) {
    if (!here.offsetParent) continue; // the bottom bar has no groups
    const strip = here.closest(".tabs, .rail");
    strip.scrollLeft = here.offsetLeft - (strip.clientWidth - here.offsetWidth) / 2;
  }
}

/** A group of the left rail that somebody opened is open on the next page, too. */
export function keepRailGroups() {
  for (const group of document.querySelectorAll(".rail-group")) {
    const key = `rail:${group.previousElementSibling.getAttribute("href")}`;
    if (localStorage.getItem(key)) group.open = true;
    group.querySelector("summary").addEventListener("click", () => {
      if (group.open) localStorage.removeItem(key);
      else localStorage.setItem(key, "open");
    });
  }
}
