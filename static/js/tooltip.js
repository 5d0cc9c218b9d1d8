// The bar's figures as a small table beside the pointer; for who does not point, the same words are the bar's label.

const FIGURES = ["allocated", "promised", "deserved", "guarantee", "capability", "pending"];

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true");

const made = (name, textContent) => Object.assign(document.createElement(name), { textContent });

function show(bar) {
  const [title, parts] = split(bar.getAttribute("aria-label"));
  const table = document.createElement("table");
  const notes = [];
  for (const part of parts) {
    const figure = FIGURES.find((name) => part.startsWith(`${name} `));
    if (!figure) notes.push(made("span", part));
    else table.insertRow().append(made("th", figure), made("td", part.slice(figure.length + 1)));
  }
  tip.replaceChildren(made("strong", title), ...(table.rows.length ? [table] : []), ...notes);
  tip.hidden = false;
  place(bar.getBoundingClientRect());
}

/** "GPU: allocated 22 of 32 GPU, deserved 16, 6 borrowed." -> "GPU" and its parts. */
function split(label) {
  const at = label.indexOf(": ");
  return [
    label.slice(0, at),
    label
      .slice(at + 2)
      .replace(/\.$/, "")
      .split(", "),
  ];
}

function place(box) {
  const { offsetWidth: width, offsetHeight: height } = tip;
  const left = Math.max(8, Math.min(box.left, innerWidth - width - 8));
  const above = box.top - height - 6;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 60 ? above : box.bottom + 6}px`;
}

export function showFigures() {
  document.body.append(tip);
  document.addEventListener("pointerover", (event) => {
    const bar = event.target.closest?.("svg.bar[aria-label]");
    if (bar) show(bar);
    else tip.hidden = true;
  });
  addEventListener("scroll", () => (tip.hidden = true), { passive: true, capture: true });
}
