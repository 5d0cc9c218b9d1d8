// Parts of pages that are asked for and put into the page: what the server answers, or in words why it did not.

/** The server's answer as text, with its status. Goes where the server sends the reader, and then answers nothing. */
export async function askFor(url, options = {}) {
  const answer = await fetch(url, { ...options, headers: { "HX-Request": "true", ...options.headers }, credentials: "same-origin" });
  const target = answer.headers.get("HX-Redirect");
  if (target) return void (location.href = target);
  return { status: answer.status, ok: answer.ok, redirected: answer.redirected, url: answer.url, happened: answer.headers.get("HX-Trigger"), text: await answer.text() };
}

/** What a whole page that came in place of a part has to say. */
export function wordsOf({ status, text }) {
  const page = new DOMParser().parseFromString(text, "text/html");
  return {
    title: page.querySelector("h1")?.textContent || "That did not work",
    words: page.querySelector("main p:not(.brand)")?.textContent || `The server answered with ${status}.`,
  };
}

export const away = (problem) => ({ title: "The server can not be reached", words: `Nothing was changed as far as this page knows. ${problem.message}` });

export function element(name, text, properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text, ...properties });
}

/** New parts have times to be told, places to be watched: whoever cares listens for this. */
export function arrived(place) {
  document.dispatchEvent(new CustomEvent("content", { detail: place }));
}
