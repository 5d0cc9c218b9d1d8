// The words of the queue tree's search box, as dashboard/forms/queue_query.py reads them: both take what there is from the page's list.

const lists = JSON.parse(document.getElementById("search-words")?.textContent ?? "{}");

/** What is typed, as terms that must all hold. A word that is not known (yet: somebody may be typing it) is told and asks for nothing. */
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

function readWord(word) {
  const negated = word.startsWith("-") && word.length > 1;
  const bare = negated ? word.slice(1) : word;
  const colon = bare.indexOf(":");
  if (colon < 0) return { field: "", values: [bare], negated };
  return { field: bare.slice(0, colon), values: bare.slice(colon + 1).split(",").filter(Boolean), negated };
}

function problemOf({ field, values }, names) {
  if (!field) return "";
  if (!(field in lists.fields)) return `“${field}:” is not known. There are ${Object.keys(lists.fields).map((known) => `${known}:`).join(", ")} and parts of names.`;
  if (!values.length) return `Go on with ${lists.fields[field]}.`;
  if (field === "below") return values.every((value) => names.has(value)) ? "" : `There is no queue “${values.find((value) => !names.has(value))}”.`;
  const unknown = values.find((value) => !isKnown(field, value));
  if (unknown === undefined) return "";
  const near = lists[field].filter((known) => known.startsWith(unknown));
  return `“${field}:${unknown}” is not known. There are ${(near.length ? near : lists[field]).map((known) => `${field}:${known}`).join(", ")}.`;
}

const isKnown = (field, value) => (field === "is" ? lists.is.includes(value) : lists.state.some((state) => state.startsWith(value)));

/** Whether a row is asked for. `above` gives the names on the way up from it, in small letters, its own first. */
export function isFound(element, terms, above) {
  return terms.every((term) => holds(element, term, above) !== term.negated);
}

function holds(element, { field, values }, above) {
  if (field === "is") return values.some((value) => element.dataset.is.split(" ").includes(value));
  if (field === "state") return values.some((value) => element.querySelector(".state").dataset.state.toLowerCase().startsWith(value));
  if (field === "below") return values.some((value) => above(element).includes(value));
  return element.dataset.key.toLowerCase().includes(values[0]);
}
