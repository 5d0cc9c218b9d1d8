// The words of the queue tree's search box, read as the server reads them: both take the known
// words from the page's list.

const known = JSON.parse(document.getElementById("search-words")?.textContent ?? "{}");

/** What is typed, as terms that must all hold. Without `names`, any name may be that of a queue.
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

/** Whether a queue is asked for. `above` gives the names on the way up from it, its own first. */
export function isFound(facts, terms, above) {
  return terms.every((term) => holds(facts, term, above) !== term.negated);
}

/** What a search looks at, of a row that is in the page. */
export function factsOfElement(element) {
  const { key, parent, is } = element.dataset;
  return {
    key,
    parent,
    is: is.split(" "),
    get state() {
      return element.querySelector(".state").dataset.state;
    },
    text: (field) => element.querySelector(`[data-text="${field}"]`).textContent,
  };
}

/** The same of a row as the server sends it. */
export function factsOfRow(row) {
  const { key, parent, is, state } = row;
  return { key, parent, is, state, text: (field) => row[field] };
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
  if (field === "below") return !names || names.has(value);
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

function holds(facts, { field, values }, above) {
  if (field === "is") return values.some((value) => facts.is.includes(value));
  if (field === "state") {
    const state = facts.state.toLowerCase();
    return values.some((value) => state.startsWith(value));
  }
  if (field === "below") {
    const names = above(facts);
    return values.some((value) => names.includes(value));
  }
  if (known.texts.includes(field)) {
    const text = facts.text(field).toLowerCase();
    return values.some((value) => text.includes(value));
  }
  return facts.key.toLowerCase().includes(values[0]);
}
