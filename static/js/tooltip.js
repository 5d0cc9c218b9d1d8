// The bar's figures as a small table beside the pointer; for who does not point, the same words are the bar's label.

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true");

function show(bar) {
  const [title, words] = split(bar.getAttribute("aria-label"));
  const heading = Object.assign(document.createElement("strong"), { textContent: title });
  const lines = words.map((line) => Object.assign(document.createElement("span"), { textContent: line }));
  tip.replaceChildren(heading, ...lines);
  tip.hidden = false;
  place(bar.getBoundingClientRect());
}

/** "GPU: 22 GPU allocated of 32, deserved 16." -> "GPU" and its parts. */
function split(label) {
  const at = label.indexOf(": ");
  return [label.slice(0, at), label.slice(at + 2).replace(/\.$/, "").split(", ")];
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
