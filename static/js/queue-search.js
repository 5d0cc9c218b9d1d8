// The words of the queue tree's search box, read as the server reads them: both take the known
// words from the page's list.

const known = JSON.parse(document.getElementById("search-words")?.textContent ?? "{}");

/** What is typed, as terms that must all hold.
 *
 * A word that is not known, or not yet (somebody may be typing it), is told and asks for nothing.
 */
export function readSearch(text, names) {
  const terms = [];
  const problems = [];
  for (const word of text.toLowerCase().split(/\s+/).filter(Boolean)) {
    const term = readWord(word);
    const problem = problemOf(term, names);
    if (problem) problems.push(problem);
    else terms.push(term);
  }
  return { terms, problems };
}

/** Whether a row is asked for. `above` gives the names on the way up from it, its own first. */
export function isFound(element, terms, above) {
  return terms.every((term) => holds(element, term, above) !== term.negated);
}

function readWord(word) {
  const negated = word.startsWith("-") && word.length > 1;
  const bare = negated ? word.slice(1) : word;
  const colon = bare.indexOf(":");
  if (colon < 0) return { field: "", values: [bare], negated };
  const values = bare
    .slice(colon + 1)
    .split(",")
    .filter(Boolean);
  return { field: bare.slice(0, colon), values, negated };
}

function problemOf({ field, values }, names) {
  if (!field) return "";
  if (!(field in known.fields)) return unknownField(field);
  if (!values.length) return `Go on with ${known.fields[field]}.`;
  const unknown = values.find((value) => !isKnown(field, value, names));
  return unknown === undefined ? "" : unknownValue(field, unknown);
}

function isKnown(field, value, names) {
  if (known.texts.includes(field)) return true;
  if (field === "below") return names.has(value);
  if (field === "is") return known.is.includes(value);
  return known.state.some((state) => state.startsWith(value));
}

function unknownField(field) {
  const fields = Object.keys(known.fields).map((name) => `${name}:`);
  return `“${field}:” is not known. There are ${fields.join(", ")} and parts of names.`;
}

function unknownValue(field, value) {
  if (field === "below") return `There is no queue “${value}”.`;
  const near = known[field].filter((word) => word.startsWith(value));
  const offered = near.length ? near : known[field];
  const words = offered.map((word) => `${field}:${word}`);
  return `“${field}:${value}” is not known. There are ${words.join(", ")}.`;
}

function holds(element, { field, values }, above) {
  if (field === "is") {
    const qualities = element.dataset.is.split(" ");
    return values.some((value) => qualities.includes(value));
  }
  if (field === "state") {
    const state = element.querySelector(".state").dataset.state.toLowerCase();
    return values.some((value) => state.startsWith(value));
  }
  if (field === "below") {
    const names = above(element);
    return values.some((value) => names.includes(value));
  }
  if (known.texts.includes(field)) {
    const text = element.querySelector(`[data-text="${field}"]`).textContent.toLowerCase();
    return values.some((value) => text.includes(value));
  }
  return element.dataset.key.toLowerCase().includes(values[0]);
}
