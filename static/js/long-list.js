// A list of more rows than a page, scrolled as one: only rows in and near the window are in the
// document, the others are room of about their height.
//
// The list is cut into slices of a page. A slice knows the key of the row before it and of its last
// row, so the server finds its rows by key, however far down it is. Without a script it is pages.

import { askForPage, parsed } from "./ask.js";
import { element, setText } from "./elements.js";
import { announce, morph } from "./parts.js";

const NEAR_PX = 900; // so far above and below the window there are rows
const SETTLE_MS = 60; // who drags the scroll bar passes rows that need not be fetched
const REMEMBER_MS = 150;
const HEIGHT_AT_FIRST = 45;

/** Rows after the row `top`, up to and with the row `end`; null is the end of the list. */
class Slice {
  rows = 0;
  height = 0;
  isLoaded = false;
  isLoading = false;

  constructor(top, end) {
    this.top = top;
    this.end = end;
    this.body = document.createElement("tbody");
  }
}

export async function startLongList(part) {
  const list = new LongList(part);
  await list.begin();
}

class LongList {
  #slices = [];
  #near = new Set();
  #settleTimer = 0;
  #rememberTimer = 0;
  #isStopped = false;

  constructor(part) {
    this.part = part;
    this.pageRows = Number(part.dataset.longList);
    this.table = part.querySelector("table");
    this.form = part.closest("form");
    this.isRising = new URLSearchParams(location.search).get("sort") === "oldest";
    this.observer = new IntersectionObserver((entries) => this.#seen(entries), {
      rootMargin: `${NEAR_PX}px 0px`,
    });
  }

  async begin() {
    const ends = await this.#askForEnds();
    if (!ends) return; // the pages are still there
    this.#cut(ends);
    this.#dress();
    this.part.addEventListener("fresh", (event) => this.#takeFresh(event));
    await this.#goBack();
    for (const slice of this.#slices) this.observer.observe(slice.body);
    this.#number();
    addEventListener("scroll", () => this.#rememberSoon(), { passive: true });
    addEventListener("pagehide", () => this.#remember());
  }

  // Slices

  async #askForEnds() {
    const answer = await askForPage(location.href, { headers: { "X-Rows": "ends" } });
    if (!answer.isOk || answer.isRedirected) return null;
    return JSON.parse(answer.text);
  }

  #cut({ rows, ends }) {
    const first = new Slice(null, ends[0] ?? null);
    first.body = this.table.tBodies[0];
    this.#slices = [first];
    for (const [place, top] of ends.entries()) {
      const slice = new Slice(top, ends[place + 1] ?? null);
      slice.rows = this.pageRows;
      this.#slices.push(slice);
      this.table.append(slice.body);
    }
    this.#slices.at(-1).rows = rows - this.pageRows * ends.length;
    this.#put(first, [...first.body.rows]);
    for (const slice of this.#slices) this.#makeRoom(slice);
  }

  #seen(entries) {
    for (const entry of entries) {
      if (entry.isIntersecting) this.#near.add(entry.target);
      else this.#near.delete(entry.target);
    }
    clearTimeout(this.#settleTimer);
    this.#settleTimer = setTimeout(() => this.#settle(), SETTLE_MS);
  }

  #settle() {
    if (this.#isStopped) return;
    for (const slice of [...this.#slices]) {
      const isNear = this.#near.has(slice.body);
      if (isNear && !slice.isLoaded) this.#load(slice);
      if (!isNear && slice.isLoaded) this.#leave(slice);
    }
  }

  async #load(slice) {
    if (slice.isLoading) return;
    slice.isLoading = true;
    const { top } = slice;
    const rows = await this.#askForRows(slice).catch(() => null); // the pill says that it is away
    slice.isLoading = false;
    if (!rows || this.#isStopped || !this.#slices.includes(slice)) return;
    if (slice.top !== top) return this.#load(slice); // rows were handed on to it meanwhile
    this.#keepingPlace(() => this.#put(slice, rows));
    this.#number();
    announce(slice.body);
  }

  async #askForRows(slice) {
    const url = new URL(location.href);
    url.searchParams.delete("after");
    if (slice.top === null) url.searchParams.delete("before");
    else url.searchParams.set("before", slice.top);
    const answer = await askForPage(url, { headers: { "X-Rows": "rows" } });
    if (!answer.isOk || answer.isRedirected) return null;
    return [...parsed(`<table><tbody>${answer.text}</tbody></table>`).querySelectorAll("tr")];
  }

  /** What the server has now may be more or fewer rows than the slice had. */
  #put(slice, rows) {
    const own = rows.filter((row) => !this.#isPast(keyOf(row), slice.end));
    const isCutShort = rows.length === this.pageRows && own.length === rows.length;
    if (isCutShort && keyOf(rows.at(-1)) !== slice.end) this.#handOn(slice, keyOf(rows.at(-1)));
    slice.rows = own.length;
    slice.isLoaded = true;
    this.#show(slice, own);
    if (!own.length) this.#drop(slice);
  }

  /** Rows after this one belong to the next slice. */
  #handOn(slice, last) {
    const next = this.#slices[this.#slices.indexOf(slice) + 1] ?? this.#append(slice);
    const left = [...slice.body.rows].filter((row) => this.#isPast(keyOf(row), last));
    this.#keepPicks(left);
    next.rows += Math.max(1, left.length, slice.rows - this.pageRows);
    next.top = last;
    slice.end = last;
    if (next.isLoaded) this.#load(next);
  }

  #append(slice) {
    const next = new Slice(null, slice.end);
    this.#slices.push(next);
    slice.body.after(next.body);
    this.observer.observe(next.body);
    this.#makeRoom(next);
    return next;
  }

  #drop(slice) {
    const place = this.#slices.indexOf(slice);
    const next = this.#slices[place + 1];
    if (place === 0 || !next) return;
    next.top = slice.top;
    this.#slices.splice(place, 1);
    this.#near.delete(slice.body);
    this.observer.unobserve(slice.body);
    slice.body.remove();
  }

  #isPast(key, end) {
    if (end === null) return false;
    return this.isRising ? key > end : key < end;
  }

  // What the document holds

  #show(slice, rows) {
    if (slice.body.contains(rows[0])) return; // the page came with them
    const fresh = document.createElement("tbody");
    fresh.append(...rows);
    if (slice.body.querySelector("[data-room]")) slice.body.replaceChildren(...rows);
    else morph(slice.body, fresh);
    slice.body.removeAttribute("aria-hidden");
    this.#pickAgain(slice);
  }

  /** Its rows go, unless somebody stands on one of them. */
  #leave(slice) {
    if (slice.body.contains(document.activeElement)) return;
    slice.height = slice.body.getBoundingClientRect().height;
    this.#keepPicks([...slice.body.rows]);
    slice.isLoaded = false;
    this.#makeRoom(slice);
  }

  /** Ticks of rows that leave their slice. They come back with the rows, wherever those come. */
  #keepPicks(rows) {
    for (const row of rows) {
      const box = row.querySelector('input[name="job"]:checked');
      if (!box) continue;
      const attributes = { type: "hidden", name: "job", value: box.value };
      this.form.append(element("input", "", attributes));
    }
  }

  #pickAgain(slice) {
    for (const pick of this.#keptPicks()) {
      const value = CSS.escape(pick.value);
      const box = slice.body.querySelector(`input[type="checkbox"][value="${value}"]`);
      if (!box) continue;
      box.checked = !box.disabled;
      pick.remove();
    }
  }

  #keptPicks() {
    return this.form.querySelectorAll('input[type="hidden"][name="job"]');
  }

  #makeRoom(slice) {
    if (slice.isLoaded) return;
    const height = slice.height || slice.rows * this.#usualHeight();
    const row = element("tr", "");
    row.dataset.room = "";
    row.style.height = `${height}px`;
    const cell = element("td", "");
    cell.colSpan = this.table.tHead.rows[0].cells.length;
    row.append(cell);
    slice.body.setAttribute("aria-hidden", "true");
    slice.body.replaceChildren(row);
  }

  #usualHeight() {
    const first = this.#slices[0];
    if (!first.isLoaded || !first.rows) return HEIGHT_AT_FIRST;
    return first.body.getBoundingClientRect().height / first.rows;
  }

  /** For screen readers: which rows of how many these are. */
  #number() {
    let place = 2; // the first row is the head
    for (const slice of this.#slices) {
      if (slice.isLoaded) this.#numberRows(slice, place);
      place += slice.rows;
    }
    this.table.setAttribute("aria-rowcount", String(place - 1));
    const total = (place - 2).toLocaleString("en").replaceAll(",", "\u2009");
    setText(
      this.note,
      `${total} jobs, loaded as you scroll. The filter looks through all of them, your browser’s ` +
        "own search only through the rows here and just above and below.",
    );
  }

  #numberRows(slice, place) {
    for (const [index, row] of [...slice.body.rows].entries()) {
      row.setAttribute("aria-rowindex", String(place + index));
    }
  }

  #dress() {
    this.table.classList.add("long-list");
    this.table.tHead.rows[0].setAttribute("aria-rowindex", "1");
    this.part.querySelector("nav.pages").hidden = true;
    this.note = element("p", "", { className: "quiet long-list-note" });
    const onPaper = element("p", "", { className: "on-paper" });
    setText(onPaper, "Printed are the jobs near the window. Filter the list to print others.");
    this.part.prepend(this.note, onPaper);
    const words = this.form.querySelector("[data-pick-all-words]");
    if (words) setText(words, "the rows here and just above and below");
  }

  // News

  #takeFresh(event) {
    if (this.#isStopped) return;
    const rows = [...event.detail.querySelectorAll("tbody tr")];
    if (!rows.length) return this.#stop();
    event.preventDefault();
    const first = this.#slices[0];
    if (first.isLoaded) this.#keepingPlace(() => this.#put(first, rows));
    this.#number();
    for (const slice of this.#slices.slice(1)) {
      if (slice.isLoaded) this.#load(slice);
    }
  }

  /** Nothing is left: the server's page says so. */
  #stop() {
    this.#isStopped = true;
    this.observer.disconnect();
    for (const pick of this.#keptPicks()) pick.remove();
  }

  // The reader's place

  /** The row on top of the window stays where it is, whatever comes and goes above it. */
  #keepingPlace(change) {
    const row = this.#isAtStart() ? null : this.#topRow();
    const before = row?.getBoundingClientRect().top;
    change();
    if (row?.isConnected) {
      scrollBy({ top: row.getBoundingClientRect().top - before, behavior: "instant" });
    }
  }

  #isAtStart() {
    return this.#slices[0].body.getBoundingClientRect().top > 0;
  }

  #topRow() {
    const edge = document.querySelector(".topbar").getBoundingClientRect().bottom;
    for (const slice of this.#slices) {
      if (!slice.isLoaded || slice.body.getBoundingClientRect().bottom <= edge) continue;
      return [...slice.body.rows].find((row) => row.getBoundingClientRect().bottom > edge);
    }
    return null;
  }

  #rememberSoon() {
    clearTimeout(this.#rememberTimer);
    this.#rememberTimer = setTimeout(() => this.#remember(), REMEMBER_MS);
  }

  /** For who opens a job and comes back. */
  #remember() {
    if (history.state?.drawer) return;
    const row = this.#isAtStart() ? null : this.#topRow();
    const place = row ? { row: keyOf(row), top: row.getBoundingClientRect().top } : null;
    history.replaceState({ ...history.state, place }, "");
  }

  async #goBack() {
    history.scrollRestoration = "manual";
    const place = history.state?.place;
    if (!place) return;
    const slice = this.#slices.find((one) => !this.#isPast(place.row, one.end));
    if (!slice.isLoaded) await this.#load(slice);
    const rows = [...slice.body.rows];
    const row = rows.find((one) => !this.#isPast(place.row, keyOf(one))) ?? rows.at(-1);
    if (!row) return; // all jobs from there on have gone meanwhile
    scrollBy({ top: row.getBoundingClientRect().top - place.top, behavior: "instant" });
  }
}

function keyOf(row) {
  return Number(row.dataset.row);
}
