// The page's one websocket: snapshots, then deltas with sequence numbers. It tells the truth about
// how fresh the page is.
//
// States: "connecting" (first try), "live", "reconnecting" (lost a moment ago), "stale" (lost for
// longer, or the server has gone quiet), "signed-out". The page is "live" only when it has received
// every topic that it follows on this connection.

const HEARTBEAT_SECONDS = 5; // how often the server beats
const SILENCE_SECONDS = 2.5 * HEARTBEAT_SECONDS; // after such a silence the connection is dead
const GRACE_SECONDS = 4; // a lost connection is "reconnecting" for so long, then the page is stale
const SIGNED_OUT = 4401; // why the server closed it
const ASK_AFTER_ATTEMPTS = 3;
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
    this.freshAt = Date.now(); // the server vouches for the page: it was just rendered
    this.#lostAt = Date.now();
    setInterval(() => this.#watch(), 1000);
    addEventListener("online", () => this.#retryNow());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#retryNow();
    });
    addEventListener("pagehide", () => this.#socket?.close());
  }

  /** The handler gets {type: "snapshot" | "delta", rows, gone}. A topic may have several. */
  follow(topic, handler) {
    const known = this.#topics.get(topic);
    if (known) known.handlers.push(handler);
    else this.#topics.set(topic, { handlers: [handler], seq: 0, waiting: true });
    // Subscribing once more gives a snapshot for the new handler.
    if (this.#isOpen()) this.#send({ type: "subscribe", topics: [topic] });
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
    const socket = new WebSocket(this.url);
    this.#socket = socket;
    socket.addEventListener("open", () => this.#opened());
    socket.addEventListener("message", (event) => {
      if (socket === this.#socket) this.#hear(JSON.parse(event.data));
    });
    socket.addEventListener("close", (event) => {
      if (socket === this.#socket) this.#lost(event.code);
    });
  }

  #opened() {
    for (const topic of this.#topics.values()) topic.waiting = true;
    this.freshHeardAt = performance.now();
    this.#send({ type: "subscribe", topics: [...this.#topics.keys()] });
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
    const isNext = !topic.waiting && message.seq === topic.seq + 1;
    if (message.type === "delta" && !isNext) {
      this.#askForAll(message.topic, topic);
      return;
    }
    topic.seq = message.seq;
    topic.waiting = false;
    const began = performance.now();
    for (const handler of topic.handlers) handler(message);
    const ms = performance.now() - began;
    this.lastApplied = { topic: message.topic, rows: message.rows.length, ms };
    this.#fresh();
  }

  /** A message is missing: a snapshot puts it right. */
  #askForAll(name, topic) {
    if (!topic.waiting) this.#send({ type: "resync", topic: name });
    topic.waiting = true;
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
    if (code === SIGNED_OUT) return this.#signedOut();
    if (this.state === "live") this.#become("reconnecting");
    this.#retryTimer = setTimeout(() => this.#connect(), this.#pause());
    this.#attempts += 1;
    if (this.#attempts === ASK_AFTER_ATTEMPTS) this.#checkSignedIn();
  }

  /** Twice as long after each attempt, and partly by chance: pages do not come back all at once. */
  #pause() {
    const longest = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#attempts);
    return longest / 2 + (Math.random() * longest) / 2;
  }

  /** A refused handshake looks like a server that is away: ask over HTTP whether it is that. */
  async #checkSignedIn() {
    const question = { method: "HEAD", redirect: "manual", cache: "no-store" };
    try {
      const answer = await fetch(location.href, question);
      if (answer.type === "opaqueredirect") this.#signedOut();
    } catch {
      // The server is away: retrying goes on.
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
    const silence = performance.now() - this.freshHeardAt;
    if (this.#isOpen() && silence > SILENCE_SECONDS * 1000) this.#replaceSilent();
    const isLong = Date.now() - this.#lostAt > GRACE_SECONDS * 1000;
    if (this.#lostAt && isLong) this.#become("stale");
  }

  #replaceSilent() {
    this.#lostAt ||= this.freshAt;
    const silent = this.#socket;
    this.#socket = null; // its close may take long: do not wait for it
    silent.close();
    this.#become("stale");
    this.#connect();
  }

  #become(state) {
    if (state === this.state) return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}

const scheme = location.protocol === "https:" ? "wss:" : "ws:";
export const live = new Live(`${scheme}//${location.host}/ws/v1/`);
globalThis.fumaroleLive = live; // for tests, and for whoever looks into a page
