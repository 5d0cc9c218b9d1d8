// The log of a pod: followed while it is written, and searched.

const MOST_LINES = 5000;
const RETRIES = 5;
const RETRY_MS = 2000;

export function startPodLog(form) {
  const text = document.getElementById("log-text");
  startFinding(text);
  if (form.dataset.follow) new Follower(form, text).offer();
}

class Follower {
  constructor(form, text) {
    this.form = form;
    this.text = text;
    this.button = document.getElementById("log-follow");
    this.words = document.getElementById("log-words");
    this.position = form.dataset.position;
    this.stop = null;
  }

  offer() {
    this.button.hidden = false;
    this.button.addEventListener("click", () => (this.stop ? this.end("") : this.begin()));
    window.addEventListener("pagehide", () => this.end(""));
  }

  async begin() {
    this.stop = new AbortController();
    this.say("Following.");
    this.text.scrollTop = this.text.scrollHeight;
    let failures = 0;
    while (this.stop && failures <= RETRIES) {
      const before = this.position;
      if (await this.listen()) return;
      failures = this.position === before ? failures + 1 : 1;
      if (!this.stop) return;
      this.say("The connection was lost. It is tried again.");
      await new Promise((resume) => setTimeout(resume, RETRY_MS));
    }
    this.end("The server cannot be reached. Follow again to go on where it was.");
  }

  end(words) {
    this.stop?.abort();
    this.stop = null;
    this.say(words);
  }

  say(words) {
    this.words.textContent = words;
    this.button.setAttribute("aria-pressed", String(Boolean(this.stop)));
    this.button.textContent = this.stop ? "Stop following" : "Follow";
  }

  /** Whether it came to an end that was told: a connection that breaks is none. */
  async listen() {
    try {
      const answer = await fetch(this.address(), {
        headers: { Accept: "text/event-stream" },
        signal: this.stop.signal,
        cache: "no-store",
      });
      if (!answer.ok) {
        this.end(await wordsOfRefusal(answer));
        return true;
      }
      return await this.take(answer.body);
    } catch {
      return !this.stop; // the reader stopped it, or it is to be tried again
    }
  }

  address() {
    const asked = new URLSearchParams({ container: this.form.elements.container.value });
    if (this.position) asked.set("from", this.position);
    return `${this.form.dataset.follow}?${asked}`;
  }

  async take(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return !this.stop;
      const blocks = (waiting + value).split("\n\n");
      waiting = blocks.pop();
      for (const block of blocks) this.event(block);
      if (!this.stop) return true;
    }
  }

  event(block) {
    const fields = new Map(block.split("\n").map((line) => line.split(/: (.*)/s)));
    if (!fields.has("data")) return;
    const data = JSON.parse(fields.get("data"));
    const name = fields.get("event");
    if (name === "end") this.end(data.message);
    else if (name === "remark") this.say(data.message);
    else this.add(data);
  }

  add({ lines, position, leftOut }) {
    this.position = position;
    const withTimes = this.form.elements.times.checked;
    const added = lines.map(([at, words]) => (withTimes ? `${at} ${words}\n` : `${words}\n`));
    if (leftOut) added.unshift("… some lines are missing: it writes faster than it is read …\n");
    const isAtEnd = this.text.scrollHeight - this.text.scrollTop - this.text.clientHeight < 40;
    document.getElementById("log-empty")?.remove();
    this.text.hidden = false;
    this.text.textContent = lastLines(this.text.textContent + added.join(""));
    if (isAtEnd) this.text.scrollTop = this.text.scrollHeight;
    this.say("Following.");
    this.text.dispatchEvent(new Event("more"));
  }
}

function lastLines(text) {
  const lines = text.split("\n");
  if (lines.length <= MOST_LINES) return text;
  return lines.slice(-MOST_LINES).join("\n");
}

async function wordsOfRefusal(answer) {
  try {
    return (await answer.json()).detail;
  } catch {
    return `The server answered with ${answer.status}.`;
  }
}

// Find

function startFinding(text) {
  const place = document.getElementById("log-find");
  const input = place.querySelector("input");
  const words = place.querySelector("span");
  let chosen = -1;
  place.hidden = false;
  const show = (step) => {
    const found = rangesOf(text, input.value);
    chosen = found.length ? (chosen + step + found.length) % found.length : -1;
    mark(found, found[chosen]);
    words.textContent = input.value ? countWords(chosen, found.length) : "";
    if (step && chosen >= 0) bringIntoView(text, found[chosen]);
  };
  input.addEventListener("input", () => {
    chosen = -1;
    show(1);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    show(event.shiftKey ? -1 : 1);
  });
  text.addEventListener("more", () => show(0));
}

function countWords(chosen, count) {
  return count ? `${Math.max(chosen, 0) + 1} of ${count}` : "not found";
}

function rangesOf(text, wanted) {
  const found = [];
  const node = text.firstChild;
  if (!wanted || !node) return found;
  const whole = node.data.toLowerCase();
  const word = wanted.toLowerCase();
  let at = whole.indexOf(word);
  while (at >= 0 && found.length < MOST_LINES) {
    const range = new Range();
    range.setStart(node, at);
    range.setEnd(node, Math.min(at + word.length, node.length));
    found.push(range);
    at = whole.indexOf(word, at + word.length);
  }
  return found;
}

function mark(found, chosen) {
  if (!CSS.highlights) return;
  CSS.highlights.set("log-found", new Highlight(...found));
  CSS.highlights.set("log-chosen", new Highlight(...(chosen ? [chosen] : [])));
}

function bringIntoView(text, range) {
  const place = range.getBoundingClientRect();
  const frame = text.getBoundingClientRect();
  text.scrollTop += place.top - frame.top - frame.height / 2;
}
