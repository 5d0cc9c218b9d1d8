// Links with data-drawer open their form in a drawer, where there is room for the page beside it. Elsewhere, and without this script, they
// are ordinary pages. The drawer has the form's own address: reload it and it is the page; go back and it is closed.

import { ask, closeDialog } from "./dialog.js";
import { holdFocus } from "./focus.js";
import { isUnsaved, watchForm } from "./form.js";
import { arrived, askFor, away, element, wordsOf } from "./fragment.js";
import { refreshSoon } from "./parts.js";

const wide = matchMedia("(min-width: 992px)"); // Bootstrap's lg
const drawer = document.getElementById("drawer");
const body = document.getElementById("drawer-body");
const ownPath = location.pathname;

let restoreFocus = null;
let asked = 0; // the newest question; older answers come too late

const form = () => body.querySelector("form");

function open(href, { isNew = true } = {}) {
  closeDialog();
  if (!drawer.open) restoreFocus = holdFocus();
  if (isNew) history.pushState({ drawer: href, page: location.href }, "", href);
  body.replaceChildren(head("Edit"), element("p", "Loading…", { className: "skeleton" }));
  if (!drawer.open) drawer.showModal();
  return fill(href);
}

async function fill(url, options) {
  const mine = ++asked;
  try {
    const answer = await askFor(url, options);
    if (answer && mine === asked && drawer.open) take(answer, Boolean(options));
  } catch (problem) {
    if (mine === asked && drawer.open) fail(away(problem));
  }
}

function take(answer, isOrder) {
  if (answer.happened === "saved") return saved(answer.text);
  if (answer.redirected) return form() ? fail(signedOut()) : void (location.href = answer.url);
  if (!answer.text.includes('id="queue-form"')) return fail(wordsOf(answer));
  body.innerHTML = answer.text;
  htmx.process(body);
  watchForm(form());
  arrived(body);
  drawer.scrollTop = 0;
  first(isOrder).focus();
}

/** Where to begin: at what the server has to say; else at the first thing that can be changed. */
function first(isOrder) {
  const said = isOrder && body.querySelector("[data-first], [aria-invalid=true], .segments [aria-current]");
  return said || body.querySelector(".fields :is(input, select, textarea):not([type=hidden], [readonly], :disabled)") || drawer;
}

const signedOut = () => ({ title: "You are signed out", words: "Nothing was saved. Sign in again in another tab, and save here once more." });

/** What was typed stays where it is; where nothing came yet, the words stand alone. */
function fail({ title, words }) {
  const said = element("p", "", { className: "banner banner-error", tabIndex: -1 });
  said.setAttribute("role", "alert");
  said.append(element("strong", `${title}.`), ` ${words}`);
  for (const button of body.querySelectorAll("button")) button.disabled = false;
  for (const older of body.querySelectorAll("[role=alert], .skeleton")) older.remove();
  body.querySelector(".drawer-head").after(said);
  said.focus();
}

function head(title) {
  const made = element("header", "", { className: "drawer-head" });
  const close = element("button", "", { className: "btn-close", type: "button" });
  close.setAttribute("aria-label", "Close");
  close.dataset.drawerClose = "asking";
  made.append(element("h2", title, { id: "drawer-title" }), close);
  return made;
}

function saved(html) {
  shut();
  history.back();
  const place = document.getElementById("messages");
  place.innerHTML = html;
  place.className = "fresh";
  for (const message of place.children) message.append(dismissal());
  arrived(place);
  refreshSoon();
}

function dismissal() {
  const button = element("button", "", { className: "btn-close", type: "button" });
  button.setAttribute("aria-label", "Dismiss");
  button.addEventListener("click", () => button.parentElement.remove());
  return button;
}

function shut() {
  asked += 1;
  drawer.close();
  body.replaceChildren();
  restoreFocus?.();
}

const mayDrop = async () => !isUnsaved(form()) || ask("Leave without saving?", "What you changed here is not saved.", { yes: "Drop my changes", no: "Keep editing" });

async function leave() {
  if (!(await mayDrop())) return;
  shut();
  history.back();
}

async function send(event) {
  event.preventDefault();
  const sender = form();
  const data = new FormData(sender, event.submitter);
  for (const button of sender.querySelectorAll("button")) button.disabled = true;
  if (sender.dataset.renew) data.set("csrfmiddlewaretoken", await freshToken(sender.action));
  await fill(sender.action, { method: "POST", body: data });
  if (form() === sender) sender.dataset.renew = "1"; // it was not taken: perhaps he signed in anew meanwhile, and the old mark is worth nothing
}

async function freshToken(url) {
  const answer = await askFor(url).catch(() => null);
  const page = new DOMParser().parseFromString(answer?.text ?? "", "text/html");
  return page.querySelector("#queue-form [name=csrfmiddlewaretoken]")?.value ?? "";
}

function onClick(event) {
  const link = event.target.closest("a[data-drawer]");
  const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
  const close = event.target.closest("[data-drawer-close]");
  if (link && plain && (wide.matches || drawer.open)) {
    event.preventDefault();
    open(link.href, { isNew: !drawer.open });
  } else if (drawer.open && close) {
    event.preventDefault();
    if (close.dataset.drawerClose === "asking") leave();
    else shut(), history.back();
  } else if (event.target === drawer) leave();
}

/** Back and forward: the page's own entry closes the drawer, the drawer's opens it. */
async function onStep({ state }) {
  if (state?.drawer) return void open(state.drawer, { isNew: false });
  if (!drawer.open) return location.pathname === ownPath ? undefined : location.reload(); // this page was loaded at the drawer's address
  const here = { drawer: form()?.action ?? "", page: location.href };
  if (await mayDrop()) shut();
  else history.pushState(here, "", here.drawer);
}

export function watchDrawer() {
  if (!drawer) return;
  if (history.state?.drawer) history.replaceState(null, ""); // reloaded: now it is the page
  document.addEventListener("click", onClick);
  addEventListener("popstate", onStep);
  drawer.addEventListener("submit", send);
  drawer.addEventListener("cancel", (event) => event.target === drawer && (event.preventDefault(), leave()));
  drawer.addEventListener("keydown", (event) => event.key === "Escape" && (event.preventDefault(), leave()));
}
