// Putting HTML from the server into the page. Every part that is drawn again goes through here:
// dialogs and drawers with `fill`, live parts, polled parts and checked forms with `morph`.

/** Show this HTML in place of whatever is there. */
export function fill(place, html) {
  place.innerHTML = html;
  announce(place);
}

/** New parts have times to be shown and fields to be watched: whoever cares listens for this. */
export function announce(place) {
  document.dispatchEvent(new CustomEvent("content", { detail: place }));
}

/** Make `old` look like `fresh`, touching only what differs.
 *
 * Children with a key stay the same element wherever they go.
 */
export function morph(old, fresh) {
  copyAttributes(old, fresh);
  const keyed = keyedChildren(old);
  let place = old.firstChild;
  for (const wanted of wantedChildren(old, fresh, keyed)) {
    const match = matching(wanted, place, keyed);
    if (!match) {
      old.insertBefore(document.importNode(wanted, true), place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else old.insertBefore(match, place);
    update(match, wanted);
  }
  removeFrom(place);
}

/** A `details` that the reader opened stays open. */
function copyAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
}

function keyedChildren(parent) {
  const withKey = [...parent.children].filter((child) => child.dataset.key);
  return new Map(withKey.map((child) => [child.dataset.key, child]));
}

function wantedChildren(old, fresh, keyed) {
  const children = [...fresh.childNodes];
  return "steady" in old.dataset ? inPresentOrder(children, keyed) : children;
}

/** A table that somebody sorted keeps its order under their pointer: new rows come last. */
function inPresentOrder(children, keyed) {
  const places = new Map([...keyed.keys()].map((key, place) => [key, place]));
  const placeOf = (child) => places.get(child.dataset?.key) ?? places.size;
  return children.sort((one, other) => placeOf(one) - placeOf(other));
}

function matching(wanted, place, keyed) {
  const key = wanted.dataset?.key;
  if (key) return keyed.get(key);
  return isSameKind(place, wanted) ? place : null;
}

function isSameKind(one, other) {
  return one && one.nodeName === other.nodeName && !one.dataset?.key;
}

function update(match, wanted) {
  if (wanted.nodeType === Node.ELEMENT_NODE) {
    if (!match.isEqualNode(wanted)) morph(match, wanted);
  } else if (match.nodeValue !== wanted.nodeValue) {
    match.nodeValue = wanted.nodeValue;
  }
}

function removeFrom(first) {
  let node = first;
  while (node) {
    const next = node.nextSibling;
    node.remove();
    node = next;
  }
}
