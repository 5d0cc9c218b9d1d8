// Who walks by keyboard keeps their place when the thing they stand on is drawn again or a dialog
// closes.

const FOCUSABLE =
  "a[href], button:not(:disabled), input:not(:disabled):not([type=hidden]), select, textarea, " +
  "summary, [tabindex]";

/** Remember where the focus is; the answer puts it back there, or as near as it can. */
export function holdFocus(element = document.activeElement) {
  if (!element || element === document.body) return () => {};
  const way = placesAbove(element);
  return () => {
    if (document.activeElement && document.activeElement !== document.body) return;
    const target = element.isConnected ? element : nearestTo(way);
    target?.focus();
  };
}

/** Each parent on the way up, with the place of the child that leads down. */
function placesAbove(element) {
  const way = [];
  for (let at = element; at && at !== document.body; at = at.parentElement) {
    const parent = at.parentElement;
    way.push({ parent, place: [...(parent?.children ?? [])].indexOf(at) });
  }
  return way;
}

function nearestTo(way) {
  const found = way.find(({ parent }) => parent?.isConnected);
  return (found && focusableNear(found)) ?? document.getElementById("content");
}

function focusableNear({ parent, place }) {
  const { children } = parent;
  return focusable(children[place]) ?? focusable(children[place - 1]) ?? focusable(parent);
}

function focusable(element) {
  if (!element || element === document.body) return null;
  return element.matches(FOCUSABLE) ? element : element.querySelector(FOCUSABLE);
}
