// The page's one websocket: snapshots, then deltas with sequence numbers. It tells the truth about how fresh the page is.
//
// States: "connecting" (first try), "live", "reconnecting" (lost a moment ago), "stale" (lost for longer, or the server has gone quiet),
// "signed-out". "live" is said only when every followed topic has been received on this connection.

const HEARTBEAT_SECONDS = 5; // how often the server beats
const SILENCE_SECONDS = 2.5 * HEARTBEAT_SECONDS; // longer than this without a word and the connection is taken for dead
const GRACE_SECONDS = 4; // how long a lost connection is "reconnecting" before the page is called stale
const FIRST_RETRY_MS = 400;
const LONGEST_RETRY_MS = 15_000;

export class Live extends EventTarget {
  #socket = null;
  #topics = new Map(); // topic -> {handlers, seq, waiting}
  #attempts = 0;
  #retryTimer = 0;
  #lostAt = 0;
  #dead = false;

  constructor(url) {
    super();
    this.url = url;
    this.state = "connecting";
    this.freshAt = Date.now(); // the server vouched for the page at this moment: it was just rendered
    this.#lostAt = Date.now();
    setInterval(() => this.#watch(), 1000);
    addEventListener("online", () => this.#retryNow());
    document.addEventListener("visibilitychange", () => document.hidden || this.#retryNow());
    addEventListener("pagehide", () => this.#socket?.close());
  }

  /** Follow a topic, alone or with others of this page. The handler gets {type: "snapshot" | "delta", rows, gone}. */
  follow(topic, handler) {
    const known = this.#topics.get(topic);
    if (known) known.handlers.push(handler);
    else this.#topics.set(topic, { handlers: [handler], seq: 0, waiting: true });
    if (this.#isOpen()) this.#send({ type: "subscribe", topics: [topic] }); // once more gives a snapshot for the new handler
    else if (!this.#socket) this.#connect();
  }

  #isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  #send(message) {
    if (this.#isOpen()) this.#socket.send(JSON.stringify(message));
  }

  #connect() {
    clearTimeout(this.#retryTimer);
    const socket = (this.#socket = new WebSocket(this.url));
    socket.addEventListener("open", () => {
      for (const topic of this.#topics.values()) topic.waiting = true;
      this.freshHeardAt = performance.now();
      this.#send({ type: "subscribe", topics: [...this.#topics.keys()] });
    });
    socket.addEventListener("message", (event) => socket === this.#socket && this.#hear(JSON.parse(event.data)));
    socket.addEventListener("close", (event) => socket === this.#socket && this.#lost(event.code));
  }

  #hear(message) {
    this.freshHeardAt = performance.now();
    if (message.type === "heartbeat") this.#fresh();
    else if (message.type === "refused") this.#refused(message);
    else this.#take(message);
  }

  #take(message) {
    const topic = this.#topics.get(message.topic);
    if (!topic) return;
    if (message.type === "delta" && (topic.waiting || message.seq !== topic.seq + 1)) {
      if (!topic.waiting) this.#send({ type: "resync", topic: message.topic }); // something is missing: ask for the whole
      topic.waiting = true;
      return;
    }
    topic.seq = message.seq;
    topic.waiting = false;
    const began = performance.now();
    for (const handler of topic.handlers) handler(message);
    this.lastApplied = { topic: message.topic, rows: message.rows.length, ms: performance.now() - began };
    this.#fresh();
  }

  #refused(message) {
    this.#topics.delete(message.topic);
    this.dispatchEvent(new CustomEvent("refused", { detail: message }));
  }

  #fresh() {
    if ([...this.#topics.values()].some((topic) => topic.waiting)) return;
    this.freshAt = Date.now();
    this.#attempts = 0;
    this.#lostAt = 0;
    this.#become("live");
  }

  #lost(code) {
    this.#socket = null;
    if (this.#dead) return;
    if (!this.#lostAt) this.#lostAt = Date.now();
    if (code === 4401) return this.#signedOut();
    if (this.state === "live") this.#become("reconnecting");
    const longest = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#attempts++);
    this.#retryTimer = setTimeout(() => this.#connect(), longest / 2 + (Math.random() * longest) / 2);
    if (this.#attempts === 3) this.#checkSignedIn();
  }

  /** A refused handshake looks like a server that is away, so ask over HTTP whether the session has run out. */
  async #checkSignedIn() {
    try {
      const answer = await fetch(location.href, { method: "HEAD", redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect") this.#signedOut();
    } catch {
      // the server is away: retrying goes on
    }
  }

  #signedOut() {
    this.#dead = true;
    clearTimeout(this.#retryTimer);
    this.#become("signed-out");
  }

  /** The reader does not want to wait for the next try. */
  retry() {
    clearTimeout(this.#retryTimer);
    this.#retryNow();
  }

  #retryNow() {
    if (this.#socket || this.#dead || !this.#topics.size) return;
    this.#attempts = 0;
    this.#connect();
  }

  #watch() {
    if (this.#dead || !this.#topics.size) return;
    if (this.#isOpen() && performance.now() - this.freshHeardAt > SILENCE_SECONDS * 1000) {
      this.#lostAt = this.#lostAt || this.freshAt;
      const silent = this.#socket;
      this.#socket = null; // its close may take long: do not wait for it
      silent.close();
      this.#become("stale");
      this.#connect();
    }
    if (this.#lostAt && Date.now() - this.#lostAt > GRACE_SECONDS * 1000) this.#become("stale");
  }

  #become(state) {
    if (state === this.state) return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}

const scheme = location.protocol === "https:" ? "wss:" : "ws:";
export const live = (globalThis.fumaroleLive = new Live(`${scheme}//${location.host}/ws/v1/`));
