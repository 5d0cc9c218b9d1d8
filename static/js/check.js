// Forms with data-check ask the server what it would say to what is typed, and stay as they are.
// data-check names, by id, the parts of the page that the answer draws again.
//
// With data-check-url the server is asked while somebody types; without, when they press Check.

import { askForPage, parsed } from "./ask.js";
import { element } from "./elements.js";
import { announce, morph } from "./parts.js";

const TYPING_PAUSE_MS = 400;
const CHOICE_PAUSE_MS = 100;

const isBeside = matchMedia("(min-width: 992px)"); // below that the answer stands under the form

export function watchChecks(root = document) {
  for (const form of root.querySelectorAll("form[data-check]")) {
    if (form.dataset.checkUrl) checkWhileTyping(form);
    else checkOnDemand(form);
  }
}

const partsOf = (form) => form.dataset.check.split(" ").map((id) => document.getElementById(id));

/** Whether the answer had the parts: a page that says why not has others. */
function placeParts(form, answer) {
  const page = parsed(answer.text);
  const places = partsOf(form);
  if (!answer.isOk || !places.every((place) => page.getElementById(place.id))) return false;
  for (const place of places) {
    morph(place, page.getElementById(place.id));
    announce(place);
  }
  return true;
}

/** The newest question counts: an older one that is still under way is given up. */
function checkWhileTyping(form) {
  let timer = 0;
  let question = null;
  const ask = async () => {
    question?.abort();
    question = new AbortController();
    const { signal } = question;
    const order = { method: "POST", body: new FormData(form), signal };
    const answer = await askForPage(form.dataset.checkUrl, order).catch(() => null);
    if (signal.aborted || !form.isConnected) return;
    const isAnswered = answer && !answer.isRedirected && placeParts(form, answer);
    form.dispatchEvent(new Event(isAnswered ? "checked" : "unchecked"));
  };
  const askAfter = (pause) => {
    clearTimeout(timer);
    timer = setTimeout(ask, pause);
  };
  form.addEventListener("input", () => askAfter(TYPING_PAUSE_MS));
  form.addEventListener("change", () => askAfter(CHOICE_PAUSE_MS));
}

function checkOnDemand(form) {
  form.addEventListener("submit", (event) => {
    if (event.submitter?.value !== "check") return;
    event.preventDefault();
    checkNow(form, event.submitter);
  });
}

async function checkNow(form, button) {
  const [place] = partsOf(form);
  place.setAttribute("aria-busy", "true");
  const order = { method: "POST", body: new FormData(form, button) };
  try {
    const answer = await askForPage(location.pathname + location.search, order);
    if (!placeParts(form, answer)) say(place, problemOf(answer));
  } catch {
    say(place, "The server cannot be reached. Nothing was submitted. Try again in a moment.");
  }
  place.removeAttribute("aria-busy");
  if (!isBeside.matches) place.scrollIntoView({ block: "start" });
}

function problemOf({ status, text }) {
  const problem = parsed(text).querySelector("main .banner-error, main h1 + p");
  return problem?.textContent || `The server answered with ${status}.`;
}

function say(place, words) {
  const line = element("p", words, { className: "banner banner-error", role: "alert" });
  place.replaceChildren(line);
}
