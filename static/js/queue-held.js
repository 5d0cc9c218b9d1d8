// Rows of queues that nobody has seen yet: below a fold, or not asked for. They become elements
// when they are shown, so a page is as large as what it shows.

import { factsOfRow } from "./queue-search.js";

export class HeldRows {
  #rows = new Map(); // name -> {row, flash}

  get size() {
    return this.#rows.size;
  }

  names() {
    return this.#rows.keys();
  }

  has(name) {
    return this.#rows.has(name);
  }

  get(name) {
    return this.#rows.get(name)?.row;
  }

  factsOf(name) {
    const row = this.get(name);
    return row && factsOfRow(row);
  }

  /** Gives whether the row is new or hangs elsewhere now. */
  put(row, flash) {
    const before = this.get(row.key);
    this.#rows.set(row.key, { row, flash });
    return !before || before.parent !== row.parent || before.depth !== row.depth;
  }

  remove(name) {
    this.#rows.delete(name);
  }

  /** Those that are to be shown, which are held no longer. Only a row that is new flashes. */
  take(isToBeShown) {
    const taken = [...this.#rows.values()].filter(({ row }) => isToBeShown(row));
    for (const { row } of taken) this.#rows.delete(row.key);
    for (const held of this.#rows.values()) held.flash = false;
    return taken;
  }
}
