// Who walks by keyboard must not fall off the page when the thing he stands on is drawn anew or a dialog closes.

const FOCUSABLE = "a[href], button:not(:disabled), input:not(:disabled):not([type=hidden]), select, textarea, summary, [tabindex]";

/** Remember where the focus is; the answer puts it back there, or as near as there is something. */
export function holdFocus(element = document.activeElement) {
  if (!element || element === document.body) return () => {};
  const way = [];
  for (let at = element; at && at !== document.body; at = at.parentElement) way.push([at.parentElement, [...(at.parentElement?.children ?? [])].indexOf(at)]);
  return () => {
    if (document.activeElement && document.activeElement !== document.body) return;
    if (element.isConnected) return void element.focus();
    const [parent, index] = way.find(([parent]) => parent?.isConnected) ?? [];
    const near = parent && (nearest(parent.children[index]) ?? nearest(parent.children[index - 1]) ?? nearest(parent));
    (near ?? document.getElementById("content"))?.focus();
  };
}

function nearest(element) {
  if (!element || element === document.body) return null;
  return element.matches(FOCUSABLE) ? element : element.querySelector(FOCUSABLE);
}
