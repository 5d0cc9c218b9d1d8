// Where one of many queues is picked, a field to search them: above a list that would have to be
// scrolled, and as offers below a field of text.

import { element } from "./elements.js";

const FEW = 8; // as many are found by looking
const LINES = 7;

export function watchPickers() {
  watchIn(document.body);
  document.addEventListener("content", (event) => watchIn(event.detail));
}

function watchIn(root) {
  root.querySelectorAll("select[data-picker]:not(:disabled)").forEach(searchSelect);
  root.querySelectorAll("fieldset.picker:has(.choice)").forEach(searchRadios);
  for (const field of root.querySelectorAll("input[data-queue-names]")) {
    const offer = () => offerNames(field).catch(() => {});
    field.addEventListener("focus", offer, { once: true });
  }
}

/** The list of options is open while something is searched for. */
function searchSelect(select) {
  new PickerSearch(select, {
    label: select.labels[0]?.firstChild?.textContent.trim() || "queues",
    choices: () => [...select.options],
    take: (option) => takeOption(select, option),
    focus: () => select.focus(),
    show: (found, isSearching) => {
      if (isSearching) select.size = Math.min(LINES, Math.max(2, found.length));
      else select.removeAttribute("size");
    },
  });
}

function takeOption(select, option) {
  if (select.value === option.value) return;
  select.value = option.value;
  select.dispatchEvent(new Event("change", { bubbles: true }));
}

function searchRadios(fieldset) {
  const radio = (state = "") => fieldset.querySelector(`.choice:not([hidden]) input${state}`);
  new PickerSearch(fieldset.querySelector(".choice"), {
    label: "queues",
    choices: () => [...fieldset.querySelectorAll(".choice")],
    take: (choice) => choice.querySelector("input").click(),
    focus: () => (radio(":checked") ?? radio())?.focus(),
    show: () => {},
  });
}

class PickerSearch {
  constructor(list, options) {
    Object.assign(this, options);
    const isWatched = list.previousElementSibling?.matches(".pick-search");
    if (!isWatched && this.choices().length > FEW) this.#build(list);
  }

  #build(list) {
    this.field = element("input", "", {
      type: "search",
      className: "form-control",
      placeholder: "Search",
      autocomplete: "off",
      spellcheck: false,
      ariaLabel: `Search ${this.label}`,
    });
    this.told = element("small", "", { className: "quiet", role: "status" });
    const box = element("div", "", { className: "pick-search" });
    box.append(this.field, this.told);
    list.before(box);
    this.field.addEventListener("input", (event) => {
      event.stopPropagation(); // nothing of the form itself has changed
      this.#filter();
    });
    this.field.addEventListener("change", (event) => event.stopPropagation());
    this.field.addEventListener("keydown", (event) => this.#onKey(event));
  }

  #filter() {
    const query = this.field.value;
    const all = this.choices();
    for (const choice of all) choice.hidden = !matches(choice.textContent, query);
    const found = all.filter((choice) => !choice.hidden);
    this.told.textContent = query ? `${found.length} of ${all.length}` : "";
    this.show(found, query !== "");
  }

  #clear() {
    this.field.value = "";
    this.#filter();
  }

  #takeFirst() {
    const first = this.choices().find((choice) => !choice.hidden);
    if (first && this.field.value) this.take(first);
  }

  #onKey(event) {
    if (event.key === "Enter") {
      event.preventDefault(); // the form is not to be sent
      this.#takeFirst();
      this.#clear();
      this.focus();
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      this.#takeFirst();
      this.focus();
    } else if (event.key === "Escape" && this.field.value) {
      event.preventDefault();
      event.stopPropagation(); // the dialog or drawer around it stays open
      this.#clear();
    }
  }
}

/** All words of the search occur in the text, in any order. */
function matches(text, query) {
  const words = query.toLowerCase().split(/\s+/);
  return words.every((word) => text.toLowerCase().includes(word));
}

let names = null;

/** A field of text offers the queues that there are, as soon as somebody goes to it. */
async function offerNames(field) {
  if (field.list) return;
  names ??= queueNames();
  const list = element("datalist", "", { id: "queue-names" });
  for (const name of await names) list.append(element("option", "", { value: name }));
  document.body.append(list);
  field.setAttribute("list", list.id);
}

async function queueNames() {
  const answer = await fetch("/queues/-/names.json");
  return answer.ok ? (await answer.json()).queues : [];
}
