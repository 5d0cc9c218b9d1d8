// Where one of many queues is picked, a field to search them: above a list that would have to be scrolled, and as offers below a field of text.

import { element } from "./fragment.js";

const FEW = 8; // as many are found by looking
const LINES = 7;

/** Words of the search that all occur in the text, in any order. */
const matches = (text, query) => query.toLowerCase().split(/\s+/).filter(Boolean).every((word) => text.toLowerCase().includes(word));

function searchOver(list, { label, choices, textOf, take, focus, show }) {
  if (list.previousElementSibling?.matches(".pick-search") || choices().length <= FEW) return;
  const field = element("input", "", { type: "search", className: "form-control", placeholder: "Search", autocomplete: "off", spellcheck: false });
  const told = element("small", "", { className: "quiet" });
  const box = element("div", "", { className: "pick-search" });
  field.setAttribute("aria-label", `Search ${label}`);
  told.setAttribute("role", "status");
  box.append(field, told);
  list.before(box);

  const filter = () => {
    const found = choices().filter((choice) => {
      choice.hidden = !matches(textOf(choice), field.value);
      return !choice.hidden;
    });
    told.textContent = field.value ? `${found.length} of ${choices().length}` : "";
    show(Boolean(field.value), found);
    return found;
  };
  field.addEventListener("input", (event) => {
    event.stopPropagation(); // nothing of the form itself has changed
    filter();
  });
  field.addEventListener("change", (event) => event.stopPropagation());
  field.addEventListener("keydown", (event) => {
    const [first] = choices().filter((choice) => !choice.hidden);
    if (event.key === "Enter") {
      event.preventDefault(); // the form is not to be sent
      if (first && field.value) take(first);
      field.value = "";
      filter();
      focus();
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      if (first && field.value) take(first);
      focus();
    } else if (event.key === "Escape" && field.value) {
      event.stopPropagation(); // what it lies in stays open
      event.preventDefault();
      field.value = "";
      filter();
    }
  });
}

/** A list of options is shown open while something is searched for. */
function overSelect(select) {
  const take = (option) => {
    if (select.value === option.value) return;
    select.value = option.value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  };
  searchOver(select, {
    label: select.labels[0]?.firstChild?.textContent.trim() || "queues",
    choices: () => [...select.options],
    textOf: (option) => option.text,
    take,
    focus: () => select.focus(),
    show: (isOpen, found) => (isOpen ? (select.size = Math.min(LINES, Math.max(2, found.length))) : select.removeAttribute("size")),
  });
}

function overRadios(fieldset) {
  searchOver(fieldset.querySelector(".choice"), {
    label: "queues",
    choices: () => [...fieldset.querySelectorAll(".choice")],
    textOf: (choice) => choice.textContent,
    take: (choice) => choice.querySelector("input").click(),
    focus: () => (fieldset.querySelector(".choice:not([hidden]) input:checked") ?? fieldset.querySelector(".choice:not([hidden]) input"))?.focus(),
    show: () => {},
  });
}

let names = null;

/** A field of text offers the queues there are, as soon as somebody goes to it. */
async function offerNames(field) {
  if (field.list) return;
  names ??= fetch("/queues/-/names.json").then((answer) => (answer.ok ? answer.json() : { queues: [] }));
  const list = element("datalist", "", { id: "queue-names" });
  list.append(...(await names).queues.map((name) => element("option", "", { value: name })));
  document.body.append(list);
  field.setAttribute("list", list.id);
}

export function watchPickers(root = document.body) {
  for (const select of root.querySelectorAll("select[data-picker]:not(:disabled)")) overSelect(select);
  for (const fieldset of root.querySelectorAll("fieldset.picker")) if (fieldset.querySelector(".choice")) overRadios(fieldset);
  for (const field of root.querySelectorAll("input[data-queue-names]")) field.addEventListener("focus", () => offerNames(field).catch(() => {}), { once: true });
}
