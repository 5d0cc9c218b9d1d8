// Links with data-dialog open their target in a dialog; forms inside it are answered in it.
// Without this script they are ordinary pages.

import { askForPart, wordsOf, wordsOfFailure } from "./ask.js";
import { disableButtons, element, isPlainClick } from "./elements.js";
import { holdFocus } from "./focus.js";
import { fill } from "./parts.js";

const FIRST = "[autofocus], input:not([type=hidden]), .action, .btn-primary";

const dialog = document.getElementById("dialog");
const body = document.getElementById("dialog-body");

let restoreFocus = null;

export function watchDialogs() {
  if (!dialog) return;
  dialog.addEventListener("close", closed);
  document.addEventListener("click", onClick);
  document.addEventListener("submit", onSubmit);
}

export function closeDialog() {
  if (dialog.open) dialog.close();
}

/** Ask a question before something is lost. Escape and a click beside it mean `no`. */
export function ask(title, words, { yes, no }) {
  const buttons = element("p", "", { className: "buttons" });
  buttons.append(closing(no, "btn btn-primary"), closing(yes, "btn btn-danger", "yes"));
  body.replaceChildren(heading(title), element("p", words), buttons);
  dialog.returnValue = "";
  show(buttons.firstChild);
  return new Promise((answer) => {
    const tell = () => answer(dialog.returnValue === "yes");
    dialog.addEventListener("close", tell, { once: true });
  });
}

/** Show a page as a dialog; the address to come back to goes with it. */
function openLink(href) {
  const url = new URL(href, location.href);
  const here = location.pathname + location.search;
  if (!url.searchParams.has("next")) url.searchParams.set("next", here);
  load(url);
}

async function load(url, options) {
  if (!dialog.open) restoreFocus = holdFocus();
  try {
    const answer = await askForPart(url, options);
    if (answer) take(answer);
  } catch (problem) {
    fail(wordsOfFailure(problem));
  }
}

function take(answer) {
  if (answer.isRedirected) {
    location.href = answer.url; // signed out, most likely
  } else if (!answer.isOk && !answer.text.includes("dialog-title")) {
    fail(wordsOf(answer));
  } else {
    fill(body, answer.text);
    show(body.querySelector(FIRST));
  }
}

function fail({ title, words }) {
  body.replaceChildren(heading(title), element("p", words), closing("OK", "btn btn-primary"));
  show(body.querySelector("button"));
}

function show(first) {
  if (!dialog.open) dialog.showModal();
  (first || dialog).focus();
}

function closed() {
  restoreFocus?.();
  restoreFocus = null;
  if (!dialog.open) body.replaceChildren(); // its ids belong to another form the next time
}

const heading = (title) => element("h2", title, { id: "dialog-title" });

function closing(words, className, answer = "") {
  const button = element("button", words, { className, type: "button" });
  button.dataset.dialogClose = answer;
  return button;
}

function onClick(event) {
  const link = event.target.closest("a[data-dialog], a.row-act");
  const close = event.target.closest("[data-dialog-close]");
  if (link && isPlainClick(event)) {
    event.preventDefault();
    openLink(link.href);
  } else if (dialog.open && (close || event.target === dialog)) {
    event.preventDefault();
    dialog.close(close?.dataset.dialogClose ?? "");
  }
}

function onSubmit(event) {
  const form = event.target;
  if (form.matches("[data-dialog-form]") && dialog.open) {
    sendForm(event, new FormData(form));
    disableButtons(form);
  } else if (form.id === "bulk" && event.submitter?.name === "command") {
    // It only asks, but names more queues than fit into an address.
    sendForm(event, new FormData(form, event.submitter));
  } else if (form.id === "bulk") {
    event.preventDefault();
    openComparison(form, event.submitter);
  }
}

/** A page of its own, with nothing of the form but the queues. */
function openComparison(form, button) {
  const names = new FormData(form).getAll("queue");
  location.href = `${button.formAction}?${new URLSearchParams(names.map((name) => ["q", name]))}`;
}

function sendForm(event, data) {
  event.preventDefault();
  load(event.target.action, { method: "POST", body: data });
}
