// Links with data-dialog open their target in a dialog; forms inside answer in it. Without this script they are ordinary pages.

import { holdFocus } from "./focus.js";
import { arrived, askFor, away, element, wordsOf } from "./fragment.js";

const dialog = document.getElementById("dialog");
const body = document.getElementById("dialog-body");
let restoreFocus = null;

async function load(url, options) {
  const answer = await askFor(url, options);
  if (!answer) return;
  if (answer.redirected) return void (location.href = answer.url); // signed out, most likely
  if (!answer.ok && !answer.text.includes("dialog-title")) return failed(wordsOf(answer));
  body.innerHTML = answer.text;
  show(body.querySelector("[autofocus], input:not([type=hidden]), .action, .btn-primary"));
  arrived(body);
}

function show(first) {
  if (!dialog.open) dialog.showModal();
  (first || dialog).focus();
}

function failed({ title, words }) {
  body.replaceChildren(element("h2", title, { id: "dialog-title" }), element("p", words), closing("OK", "btn btn-primary"));
  show(body.querySelector("button"));
}

function closing(words, className, answer = "") {
  const button = element("button", words, { className, type: "button" });
  button.dataset.dialogClose = answer;
  return button;
}

/** Ask for a page as a dialog; the address to come back to goes with it. */
export function openDialog(href) {
  if (!dialog.open) restoreFocus = holdFocus();
  const url = new URL(href, location.href);
  if (!url.searchParams.has("next")) url.searchParams.set("next", location.pathname + location.search);
  return load(url).catch((problem) => failed(away(problem)));
}

/** The same for a form that only asks: what it holds may be more than an address does. */
function openForm(form, submitter) {
  if (!dialog.open) restoreFocus = holdFocus();
  load(form.action, { method: "POST", body: new FormData(form, submitter) }).catch((problem) => failed(away(problem)));
}

export const closeDialog = () => dialog.open && dialog.close();

/** A question before something is lost. Escape, and a click beside it, mean `no`. */
export function ask(title, words, { yes, no }) {
  const buttons = element("p", "", { className: "buttons" });
  buttons.append(closing(no, "btn btn-primary"), closing(yes, "btn btn-danger", "yes"));
  body.replaceChildren(element("h2", title, { id: "dialog-title" }), element("p", words), buttons);
  dialog.returnValue = "";
  show(buttons.firstChild);
  return new Promise((answer) => dialog.addEventListener("close", () => answer(dialog.returnValue === "yes"), { once: true }));
}

if (dialog) {
  dialog.addEventListener("close", () => {
    restoreFocus?.();
    restoreFocus = null;
    if (!dialog.open) body.replaceChildren(); // its ids are another form's, the next time
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-dialog], a.row-act");
    const close = event.target.closest("[data-dialog-close]");
    if (link && !event.ctrlKey && !event.metaKey && event.button === 0) {
      event.preventDefault();
      openDialog(link.href);
    } else if (dialog.open && (close || event.target === dialog)) {
      event.preventDefault();
      dialog.close(close?.dataset.dialogClose ?? "");
    }
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-dialog-form]") && dialog.open) {
      event.preventDefault();
      for (const button of form.querySelectorAll("button")) button.disabled = true;
      load(form.action, { method: "POST", body: new FormData(form) }).catch((problem) => failed(away(problem)));
    } else if (form.id === "bulk") {
      event.preventDefault();
      openForm(form, event.submitter);
    }
  });
}
