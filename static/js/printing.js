// Paper cannot be unfolded: the table behind each chart is printed with it.

const TABLES = "details.idle:not([open])";

export function unfoldForPaper() {
  const isPrinted = matchMedia("print");
  let unfolded = [];
  const follow = () => {
    if (isPrinted.matches) unfolded = [...document.querySelectorAll(TABLES)];
    for (const details of unfolded) details.open = isPrinted.matches;
  };
  follow();
  isPrinted.addEventListener("change", follow);
}
