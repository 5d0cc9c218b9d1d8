// Paper cannot be unfolded: the table behind each chart is printed with it.

const TABLES = "details.idle:not([open])";

export function unfoldForPaper() {
  let unfolded = [];
  matchMedia("print").addEventListener("change", ({ matches }) => {
    if (matches) unfolded = [...document.querySelectorAll(TABLES)];
    for (const details of unfolded) details.open = matches;
  });
}
