// Small helpers for elements of the page.

export function element(name, text, properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text, ...properties });
}

/** Leaves an element alone that has this text already: what is read aloud or selected stays. */
export function setText(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** A click that should open the link here, not in another tab or window. */
export function isPlainClick(event) {
  return event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
}

export function disableButtons(form, isDisabled = true) {
  for (const button of form.querySelectorAll("button")) button.disabled = isDisabled;
}
