// Asking the server for HTML: one part of a page, or a whole page to take parts from.

/** A part alone, without the frame around it: what goes into a dialog or a drawer.
 *
 * Gives nothing when the server sends the reader elsewhere; the browser is on its way there then.
 */
export async function askForPart(url, options = {}) {
  const answer = await send(url, { ...options, headers: { "X-Part": "true" } });
  if (!answer.goTo) return answer;
  location.href = answer.goTo;
  return null;
}

export function askForPage(url, options = {}) {
  return send(url, { cache: "no-store", ...options });
}

async function send(url, options) {
  const answer = await fetch(url, { credentials: "same-origin", ...options });
  return {
    url: answer.url,
    status: answer.status,
    isOk: answer.ok,
    isRedirected: answer.redirected,
    goTo: answer.headers.get("X-Go-To"),
    outcome: answer.headers.get("X-Outcome"),
    text: await answer.text(),
  };
}

export function parsed(text) {
  return new DOMParser().parseFromString(text, "text/html");
}

/** What a whole page that came in place of a part has to say. */
export function wordsOf({ status, text }) {
  const page = parsed(text);
  const title = page.querySelector("h1")?.textContent;
  const words = page.querySelector("main p:not(.brand)")?.textContent;
  return {
    title: title || "That did not work",
    words: words || `The server answered with ${status}.`,
  };
}

export function wordsOfFailure(problem) {
  return {
    title: "The server cannot be reached",
    words: `Nothing was changed as far as this page knows. ${problem.message}`,
  };
}
