// The queue form, as a page or in a drawer. What breaks a rule is marked and said at its field as
// the server's findings come in, one click takes its advice, and nobody leaves by mistake what
// they typed.

import { element } from "./elements.js";

const written = new WeakMap(); // form -> what was in it when it came

const content = (form) => new URLSearchParams(new FormData(form)).toString();

export function watchForm(form) {
  if (!form) return;
  const findings = form.querySelector("#findings");
  written.set(form, content(form));
  findings.addEventListener("click", (event) => takeAdvice(form, event));
  form.parentElement.addEventListener("click", (event) => showFindings(event, findings));
  form.addEventListener("checked", () => mark(form, findings));
  tellChecking(form);
  mark(form, findings);
}

/** Something is typed that the server has not stored. */
export function isUnsaved(form) {
  if (!form?.isConnected || "sent" in form.dataset) return false;
  return "unsaved" in form.dataset || written.get(form) !== content(form);
}

/** The browser itself asks before a page is left. Who saves or discards is not asked. */
export function guardLeaving() {
  const queueForm = () => document.getElementById("queue-form");
  document.addEventListener("submit", ({ target, defaultPrevented }) => {
    if (target.id === "queue-form" && !defaultPrevented) markAsSent(target);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-discard]")) markAsSent(queueForm());
  });
  document.addEventListener("input", (event) => delete event.target.form?.dataset.sent);
  addEventListener("beforeunload", (event) => {
    if (isUnsaved(queueForm())) event.preventDefault();
  });
}

function markAsSent(form) {
  if (form) form.dataset.sent = "";
}

/** The inputs that the findings are about are marked, and the words stand beside them too. */
function mark(form, findings) {
  for (const said of form.querySelectorAll(".breach")) said.remove();
  const violations = [...findings.querySelectorAll("[data-violates]")];
  for (const input of form.querySelectorAll("[data-field]")) {
    const mine = violations.filter((item) => item.dataset.violates === input.dataset.field);
    markInput(input, mine.map((item) => item.querySelector("p").textContent).join(" "));
  }
}

function markInput(input, words) {
  const isBroken = words !== "";
  input.classList.toggle("is-invalid", isBroken);
  input.setAttribute("aria-invalid", String(isBroken));
  input.title = words;
  if (isBroken) say(input, words);
  else input.removeAttribute("aria-describedby");
}

function say(input, words) {
  const id = `breach-${input.dataset.field}`;
  const said = element("p", words, { className: "breach", id });
  const line = input.closest("tr");
  if (line) line.after(asRow(said));
  else input.after(said);
  input.setAttribute("aria-describedby", id);
  const isHere = input === document.activeElement;
  if (isHere) said.scrollIntoView({ block: "nearest" }); // the buttons may cover it
}

function asRow(said) {
  const row = element("tr", "", { className: "breach" });
  const cell = element("td", "", { colSpan: 4 });
  cell.append(said);
  row.append(cell);
  return row;
}

/** From the first key to the answer, the last verdict is not about what is typed now. */
function tellChecking(form) {
  const say = (words) => {
    const said = element("span", words);
    said.dataset.verdict = "checking";
    form.querySelector("#verdict-line").replaceChildren(said);
  };
  form.addEventListener("input", () => say("Checking…"));
  form.addEventListener("unchecked", () => {
    say("Could not be checked just now. Saving checks it again.");
  });
}

function takeAdvice(form, event) {
  const button = event.target.closest('button[name="mend"]');
  if (!button) return;
  const split = button.value.lastIndexOf("=");
  const field = CSS.escape(button.value.slice(0, split));
  const input = form.querySelector(`[data-field="${field}"]`);
  if (!input) return;
  event.preventDefault(); // the server would do it too, with the whole page
  input.value = button.value.slice(split + 1);
  input.focus();
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

function showFindings(event, findings) {
  if (!event.target.closest('a[href="#findings"]')) return;
  event.preventDefault(); // an address with an anchor would be a step to go back from
  findings.scrollIntoView({ block: "center" });
  findings.focus({ preventScroll: true });
}
