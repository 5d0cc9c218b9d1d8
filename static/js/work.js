// Pages of jobs and the like: ticked rows, a check without leaving the form, pages that look again by themselves.

import { morph } from "./parts.js";

/** Ticked rows: how many, this whole page, or all that match. */
function watchPicks(form) {
  const words = form.querySelector("[data-picked]");
  const page = form.querySelector("[data-pick-all]");
  const matching = form.querySelector("[data-pick-matching]");
  const buttons = form.querySelector("[data-when-picked]");
  const boxes = () => [...form.querySelectorAll('input[name="job"]:not(:disabled)')];
  const show = () => {
    const picked = boxes().filter((box) => box.checked).length;
    words.textContent = matching?.checked ? "all that match" : picked ? `${picked} chosen` : "";
    page.checked = picked > 0 && picked === boxes().length;
    buttons.hidden = !picked && !matching?.checked;
  };
  form.addEventListener("change", (event) => {
    if (event.target === page) for (const box of boxes()) box.checked = page.checked;
    show();
  });
  document.addEventListener("content", show);
  show();
}

const beside = matchMedia("(min-width: 992px)"); // below that the answer stands under the form

/** "Check" asks the server and puts the answer beside the form, which stays as it is. */
function watchCheck(form) {
  form.addEventListener("submit", async (event) => {
    if (event.submitter?.value !== "check") return;
    event.preventDefault();
    const place = document.getElementById("verdict"); // another one after each answer
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(location.pathname + location.search, { method: "POST", body: new FormData(form, event.submitter) });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("verdict");
      const problem = page.querySelector("main .banner-error, main h1 + p");
      if (fresh && answer.ok) place.replaceWith(document.importNode(fresh, true));
      else say(place, problem?.textContent || `The server answered with ${answer.status}.`);
    } catch {
      say(place, "The server can not be reached. Nothing was submitted. Try again in a moment.");
    }
    if (document.body.contains(place)) place.removeAttribute("aria-busy");
    else if (!beside.matches) document.getElementById("verdict").scrollIntoView({ block: "start" });
  });
}

function say(place, words) {
  const line = Object.assign(document.createElement("p"), { textContent: words, className: "banner banner-error" });
  line.setAttribute("role", "alert");
  place.replaceChildren(line);
}

/** Parts with data-poll look again after so many milliseconds, for as long as the server says so. */
function keepLooking(part) {
  const pause = Number(part.dataset.poll);
  if (!pause) return;
  setTimeout(async () => {
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = answer.ok && page.getElementById(part.id);
      if (fresh) {
        morph(part, fresh);
        document.title = page.title;
      }
    } catch {
      // the pill tells that the server is away
    }
    keepLooking(part);
  }, pause);
}

const actions = document.getElementById("job-actions");
if (actions?.querySelector("[data-pick-all]")) watchPicks(actions); // who may command none of them is offered nothing
for (const form of document.querySelectorAll("form[data-check]")) watchCheck(form);
for (const part of document.querySelectorAll("[data-poll]")) keepLooking(part);
if (document.querySelector("[data-durations]")) import("./durations.js").then(({ drawDurations }) => drawDurations());
