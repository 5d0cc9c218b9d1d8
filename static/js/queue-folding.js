// Which queues of the tree are folded: so many levels are open, but for those that somebody folded
// or unfolded by hand. The server keeps it, for this reader in every browser.

const TELL_AFTER_MS = 400;
const ALL_LEVELS = 0;

const namesIn = (text) => new Set((text ?? "").split(" ").filter(Boolean));

export class Folding {
  #timer = 0;

  constructor({ levels, folded, unfolded }) {
    this.levels = Number(levels ?? ALL_LEVELS);
    this.folded = namesIn(folded);
    this.unfolded = namesIn(unfolded);
  }

  isFolded(element) {
    if (!element.hasAttribute("aria-expanded")) return false;
    return this.isFoldedAt(element.dataset.key, Number(element.getAttribute("aria-level")));
  }

  /** Of a queue with others below it. */
  isFoldedAt(key, level) {
    if (this.folded.has(key)) return true;
    if (this.levels === ALL_LEVELS || this.unfolded.has(key)) return false;
    return level >= this.levels;
  }

  /** What was folded and unfolded by hand no longer counts. */
  openLevels(levels) {
    this.levels = levels;
    this.folded.clear();
    this.unfolded.clear();
    this.#keep();
  }

  toggle(element, open) {
    const { key } = element.dataset;
    const [other, own] = open ? [this.folded, this.unfolded] : [this.unfolded, this.folded];
    other.delete(key);
    if (open === this.isFolded(element)) own.add(key);
    this.#keep();
  }

  #keep() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tellServer(), TELL_AFTER_MS);
  }

  /** If the server is away, the tree stays folded until the next load. */
  #tellServer() {
    const data = new FormData();
    data.set("csrfmiddlewaretoken", document.querySelector("[name=csrfmiddlewaretoken]").value);
    data.set("levels", this.levels);
    for (const name of this.folded) data.append("queue", name);
    for (const name of this.unfolded) data.append("unfolded", name);
    fetch("/queues/-/folded/", { method: "POST", body: data, keepalive: true }).catch(() => {});
  }
}
