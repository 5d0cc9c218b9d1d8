// Links with data-drawer open their form in a drawer, where there is room for the page beside it.
// Elsewhere, and without this script, they are ordinary pages. The drawer has the form's own
// address: reload it and it is the page; go back and it is closed.

import { askForPart, parsed, wordsOf, wordsOfFailure } from "./ask.js";
import { watchChecks } from "./check.js";
import { ask, closeDialog } from "./dialog.js";
import { disableButtons, element, isPlainClick } from "./elements.js";
import { holdFocus } from "./focus.js";
import { isUnsaved, watchForm } from "./form.js";
import { fill } from "./parts.js";
import { refreshSoon } from "./refresh.js";

const SAID = "[data-first], [aria-invalid=true], .segments [aria-current]";
const FIELD = ":is(input, select, textarea):not([type=hidden], [readonly], :disabled)";

const isWide = matchMedia("(min-width: 992px)");
const drawer = document.getElementById("drawer");
const body = document.getElementById("drawer-body");
const ownPath = location.pathname;

let restoreFocus = null;
let asked = 0; // counts the questions: an answer to an older one comes too late

export function watchDrawer() {
  if (!drawer) return;
  if (history.state?.drawer) history.replaceState(null, ""); // reloaded: now it is the page
  document.addEventListener("click", onClick);
  addEventListener("popstate", onStep);
  drawer.addEventListener("submit", send);
  drawer.addEventListener("cancel", onCancel);
  drawer.addEventListener("keydown", onKey);
}

const form = () => body.querySelector("form");

function open(href, { isNew = true } = {}) {
  closeDialog();
  if (!drawer.open) restoreFocus = holdFocus();
  if (isNew) history.pushState({ drawer: href, page: location.href }, "", href);
  body.replaceChildren(head("Edit"), element("p", "Loading…", { className: "skeleton" }));
  if (!drawer.open) drawer.showModal();
  load(href);
}

async function load(url, options) {
  asked += 1;
  const mine = asked;
  const isStillAsked = () => mine === asked && drawer.open;
  try {
    const answer = await askForPart(url, options);
    if (answer && isStillAsked()) take(answer, Boolean(options));
  } catch (problem) {
    if (isStillAsked()) fail(wordsOfFailure(problem));
  }
}

function take(answer, isOrder) {
  if (answer.outcome === "saved") saved(answer.text);
  else if (answer.isRedirected) signedOut(answer.url);
  else if (answer.text.includes('id="queue-form"')) showForm(answer.text, isOrder);
  else fail(wordsOf(answer));
}

function showForm(html, isOrder) {
  fill(body, html);
  watchChecks(body);
  watchForm(form());
  drawer.scrollTop = 0;
  firstPlace(isOrder).focus();
}

/** Where to begin: at what the server has to say; else at the first field that can be changed. */
function firstPlace(isOrder) {
  const said = isOrder && body.querySelector(SAID);
  return said || body.querySelector(`.fields ${FIELD}`) || drawer;
}

/** What is typed is kept; where nothing is typed yet, the reader signs in. */
function signedOut(url) {
  if (!form()) {
    location.href = url;
    return;
  }
  const words = "Nothing was saved. Sign in again in another tab, and save here once more.";
  fail({ title: "You are signed out", words });
}

/** What was typed stays where it is; where nothing came yet, the words stand alone. */
function fail({ title, words }) {
  const said = element("p", "", { className: "banner banner-error", tabIndex: -1, role: "alert" });
  said.append(element("strong", `${title}.`), ` ${words}`);
  disableButtons(body, false);
  for (const older of body.querySelectorAll("[role=alert], .skeleton")) older.remove();
  body.querySelector(".drawer-head").after(said);
  said.focus();
}

function head(title) {
  const made = element("header", "", { className: "drawer-head" });
  const close = closeButton("Close");
  close.dataset.drawerClose = "asking";
  made.append(element("h2", title, { id: "drawer-title" }), close);
  return made;
}

function closeButton(label) {
  return element("button", "", { className: "btn-close", type: "button", ariaLabel: label });
}

function saved(html) {
  shut();
  history.back();
  const place = document.getElementById("messages");
  fill(place, html);
  place.className = "fresh";
  for (const message of place.children) message.append(dismissal());
  refreshSoon();
}

function dismissal() {
  const button = closeButton("Dismiss");
  button.addEventListener("click", () => button.parentElement.remove());
  return button;
}

function shut() {
  asked += 1;
  drawer.close();
  body.replaceChildren();
  restoreFocus?.();
}

function shutAndStepBack() {
  shut();
  history.back();
}

async function mayDrop() {
  if (!isUnsaved(form())) return true;
  const choices = { yes: "Drop my changes", no: "Keep editing" };
  return ask("Leave without saving?", "What you changed here is not saved.", choices);
}

async function leave() {
  if (await mayDrop()) shutAndStepBack();
}

async function send(event) {
  event.preventDefault();
  const sender = form();
  const data = new FormData(sender, event.submitter);
  disableButtons(sender);
  if (sender.dataset.renew) data.set("csrfmiddlewaretoken", await freshToken(sender.action));
  await load(sender.action, { method: "POST", body: data });
  // It was not taken. Perhaps the reader signs in again meanwhile: then the old token is worthless.
  if (form() === sender) sender.dataset.renew = "1";
}

async function freshToken(url) {
  const answer = await askForPart(url).catch(() => null);
  const token = parsed(answer?.text ?? "").querySelector("#queue-form [name=csrfmiddlewaretoken]");
  return token?.value ?? "";
}

function onClick(event) {
  const link = event.target.closest("a[data-drawer]");
  const close = event.target.closest("[data-drawer-close]");
  if (link && isPlainClick(event) && (isWide.matches || drawer.open)) {
    event.preventDefault();
    open(link.href, { isNew: !drawer.open });
  } else if (drawer.open && close) {
    event.preventDefault();
    if (close.dataset.drawerClose === "asking") leave();
    else shutAndStepBack();
  } else if (event.target === drawer) {
    leave();
  }
}

function onCancel(event) {
  if (event.target !== drawer) return;
  event.preventDefault();
  leave();
}

function onKey(event) {
  if (event.key !== "Escape") return;
  event.preventDefault();
  leave();
}

/** Back and forward: the page's own entry closes the drawer, the drawer's opens it. */
async function onStep({ state }) {
  if (state?.drawer) {
    open(state.drawer, { isNew: false });
  } else if (!drawer.open) {
    if (location.pathname !== ownPath) location.reload(); // this page was loaded at the drawer's
  } else {
    await closeOrStay();
  }
}

async function closeOrStay() {
  const here = { drawer: form()?.action ?? "", page: location.href };
  if (await mayDrop()) shut();
  else history.pushState(here, "", here.drawer);
}
