// Links with data-dialog open their target in a dialog; forms inside answer in it. Without this script they are ordinary pages.

import { holdFocus } from "./focus.js";

const dialog = document.getElementById("dialog");
const body = document.getElementById("dialog-body");
let restoreFocus = null;

async function load(url, options = {}) {
  const answer = await fetch(url, { ...options, headers: { "HX-Request": "true", ...options.headers }, credentials: "same-origin" });
  const target = answer.headers.get("HX-Redirect");
  if (target) return void (location.href = target);
  if (answer.redirected) return void (location.href = answer.url); // signed out, most likely
  const text = await answer.text();
  if (!answer.ok && !text.includes("dialog-title")) return failed(answer.status, text);
  show(text);
}

function show(html) {
  body.innerHTML = html;
  if (!dialog.open) dialog.showModal();
  (body.querySelector("[autofocus], input:not([type=hidden]), .action, .btn-primary") || dialog).focus();
  document.dispatchEvent(new CustomEvent("content", { detail: body }));
}

function failed(status, html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  const title = page.querySelector("h1")?.textContent || "That did not work";
  const words = page.querySelector("main p:not(.brand)")?.textContent || `The server answered with ${status}.`;
  body.replaceChildren(element("h2", title, "dialog-title"), element("p", words), close());
  if (!dialog.open) dialog.showModal();
}

function element(name, text, id = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (id) made.id = id;
  return made;
}

function close() {
  const button = element("button", "Close");
  button.className = "btn btn-primary";
  button.dataset.dialogClose = "";
  return button;
}

const away = (problem) => failed(0, `<main><h1>The server can not be reached</h1><p>Nothing was changed as far as this page knows. ${problem.message}</p></main>`);

/** Ask for a page as a dialog; the address to come back to goes with it. */
export function openDialog(href) {
  if (!dialog.open) restoreFocus = holdFocus();
  const url = new URL(href, location.href);
  if (!url.searchParams.has("next")) url.searchParams.set("next", location.pathname + location.search);
  return load(url).catch(away);
}

if (dialog) {
  dialog.addEventListener("close", () => restoreFocus?.());
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-dialog], a.row-act");
    if (link && !event.ctrlKey && !event.metaKey && event.button === 0) {
      event.preventDefault();
      openDialog(link.href);
    } else if (dialog.open && (event.target.closest("[data-dialog-close]") || event.target === dialog)) {
      event.preventDefault();
      dialog.close();
    }
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-dialog-form]") && dialog.open) {
      event.preventDefault();
      for (const button of form.querySelectorAll("button")) button.disabled = true;
      load(form.action, { method: "POST", body: new FormData(form) }).catch(away);
    } else if (form.id === "bulk") {
      event.preventDefault();
      const data = new FormData(form, event.submitter);
      openDialog(`${form.action}?${new URLSearchParams(data)}`);
    }
  });
}
