// The queue form, as a page or in a drawer: what breaks a rule is marked and said where it is, as the server's findings come in; one click
// takes its advice; nobody leaves what is typed by mistake.

import { element } from "./fragment.js";

const written = new WeakMap(); // form -> what was in it when it came

const content = (form) => new URLSearchParams(new FormData(form)).toString();

/** Something is typed that the server has not stored. */
export function isUnsaved(form) {
  return Boolean(form?.isConnected) && !("sent" in form.dataset) && ("unsaved" in form.dataset || written.get(form) !== content(form));
}

/** The inputs that the findings speak of are marked, and what they say stands beside them too. */
function mark(form, findings) {
  for (const said of form.querySelectorAll(".breach")) said.remove();
  const broken = [...findings.querySelectorAll("[data-violates]")].map((item) => [item.dataset.violates, item.querySelector("p").textContent]);
  for (const input of form.querySelectorAll("[data-field]")) {
    const words = broken.filter(([field]) => field === input.dataset.field).map(([, text]) => text).join(" ");
    input.classList.toggle("is-invalid", Boolean(words));
    input.setAttribute("aria-invalid", String(Boolean(words)));
    input.title = words;
    if (words) say(input, words);
    else input.removeAttribute("aria-describedby");
  }
}

function say(input, words) {
  const said = element("p", words, { className: "breach", id: `breach-${input.dataset.field}` });
  const line = input.closest("tr");
  if (line) line.after(inRow(said));
  else input.after(said);
  input.setAttribute("aria-describedby", said.id);
  if (input === document.activeElement) said.scrollIntoView({ block: "nearest" }); // it may lie under the buttons
}

function inRow(said) {
  const row = element("tr", "", { className: "breach" });
  const cell = element("td", "", { colSpan: 4 });
  cell.append(said);
  row.append(cell);
  return row;
}

/** From the first key to the answer the last verdict is about something else than what is typed. */
function tellChecking(form) {
  const say = (words) => {
    const said = element("span", words);
    said.dataset.verdict = "checking";
    form.querySelector("#verdict-line").replaceChildren(said);
  };
  for (const begin of ["input", "htmx:beforeRequest"]) form.addEventListener(begin, () => say("Checking…"));
  for (const failure of ["htmx:responseError", "htmx:sendError", "htmx:timeout"])
    form.addEventListener(failure, () => say("Could not be checked just now. Saving checks it again."));
}

function takeAdvice(form, event) {
  const button = event.target.closest('button[name="mend"]');
  const at = button?.value.lastIndexOf("=");
  const input = button && form.querySelector(`[data-field="${CSS.escape(button.value.slice(0, at))}"]`);
  if (!input) return;
  event.preventDefault(); // the server would do it too, with the whole page
  input.value = button.value.slice(at + 1);
  input.focus();
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

function showFindings(event, findings) {
  if (!event.target.closest('a[href="#findings"]')) return;
  event.preventDefault(); // an address with a mark would be a step to go back from
  findings.scrollIntoView({ block: "center" });
  findings.focus({ preventScroll: true });
}

export function watchForm(form) {
  if (!form) return;
  const findings = form.querySelector("#findings");
  written.set(form, content(form));
  findings.addEventListener("click", (event) => takeAdvice(form, event));
  form.parentElement.addEventListener("click", (event) => showFindings(event, findings));
  form.addEventListener("htmx:afterSwap", (event) => event.target === findings && mark(form, findings));
  tellChecking(form);
  mark(form, findings);
}

/** A page that is left asks by the browser's own means; who saves or says that he drops it is not asked. */
export function guardLeaving() {
  const drop = (form) => form && (form.dataset.sent = "");
  document.addEventListener("submit", (event) => event.target.id === "queue-form" && !event.defaultPrevented && drop(event.target));
  document.addEventListener("click", (event) => event.target.closest("[data-discard]") && drop(document.getElementById("queue-form")));
  document.addEventListener("input", (event) => delete event.target.form?.dataset.sent);
  addEventListener("beforeunload", (event) => isUnsaved(document.getElementById("queue-form")) && event.preventDefault());
}
