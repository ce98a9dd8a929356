import type { components } from "./api.js";
import { type Decision, type Filter, hasNotEnded, type Intent, isDone, NotKnown, type Outcome, type Problem, Refused, type Write } from "./outcome.js";
import { json, Step } from "./step.js";
import { type Run, tool, type ToolResult, type ToolSpec } from "./tool.js";

export interface Config {
  /** The server's address. Default: READBACK_URL. */
  url?: string;
  /** Default: READBACK_TOKEN. A server that checks no credentials needs none. */
  token?: string;
  /** How long one request may last. Default: 60 s. */
  timeoutMs?: number;
  /** For how long a call repeats its request, and waits for the end of a write. Default: 300 s. */
  patienceMs?: number;
  fetch?: typeof fetch;
}

export interface Options {
  /** Ends the waiting, not the write. */
  signal?: AbortSignal;
  patienceMs?: number;
}

interface Request extends Options {
  body?: string;
  waitMs?: number;
  final?: boolean;
  /** The members of a 2xx response. Another body is not the server's: it is no response. */
  has?: readonly string[];
  /** The request must not be repeated. */
  once?: boolean;
}

interface Answer<T> {
  value?: T;
  retryAfter?: number;
  problem?: Problem;
}

const anOutcome = ["id", "status"];

// A server takes a limited number of requests at once; more would be refused and repeated.
const atOnce = 128;
// The server sends a sign of life every 15 s.
const silenceMs = 45_000;
const longestWait = 30; // seconds

/** A client of a readback server. One is enough for a program. */
export class Readback {
  readonly #headers: Headers;
  readonly #timeoutMs: number;
  readonly #patienceMs: number;
  readonly #fetch: (path: string, init: RequestInit) => Promise<Response>;
  readonly #queue = new Set<() => void>();
  #free = atOnce;

  constructor({ url = env("READBACK_URL"), token = env("READBACK_TOKEN"), timeoutMs = 60_000, patienceMs = 300_000, fetch = globalThis.fetch }: Config = {}) {
    if (!url || !/^https?:/i.test(url)) throw new TypeError("the server's address is missing, or begins with neither https: nor http:. Set url, or READBACK_URL");
    const { origin, pathname } = new URL(url);
    this.#headers = new Headers(token ? { Authorization: `Bearer ${token}` } : {});
    this.#timeoutMs = timeoutMs;
    this.#patienceMs = patienceMs;
    // Some frameworks keep responses of GET. A browser's fetch is no method of another object.
    this.#fetch = (path, init) => fetch(origin + pathname.replace(/\/+$/, "") + path, { ...init, redirect: "manual", cache: "no-store" });
  }

  /**
   * Declares a write, and waits until it has ended or waits for a reviewer, at most for patienceMs.
   * The same intent again is the same write: repeat it at any time, after a crash too.
   * Throws Refused, and NotKnown where no answer came.
   */
  async write(intent: Intent, { signal, patienceMs = this.#patienceMs }: Options = {}): Promise<Outcome> {
    const body = json(named(intent));
    return this.#send<Outcome>("POST", "/v1/writes", { signal, patienceMs, waitMs: patienceMs, body, has: anOutcome }, (o) => o.status !== "in_progress");
  }

  /**
   * Gets the outcome of a write, and waits for its end at most for waitMs, through decisions of reviewers;
   * with final, until no recheck can change the outcome. Default: it does not wait.
   */
  async get(id: string, { waitMs = 0, final = false, ...options }: Options & { waitMs?: number; final?: boolean } = {}): Promise<Outcome> {
    const done = (o: Outcome) => isDone(o) && !(final && o.recheck_until);
    return this.#send("GET", `/v1/writes/${encodeURIComponent(id)}`, { ...options, waitMs, final, has: anOutcome }, done);
  }

  /** Finds writes, newest first. The token needs the right to trace. */
  async *writes(filter: Filter = {}, options: Options = {}): AsyncGenerator<Write, void, undefined> {
    let after: string | undefined;
    do {
      const page: components["schemas"]["Writes"] = await this.#send("GET", `/v1/writes?${query({ ...filter, after })}`, { ...options, has: ["writes"] });
      yield* page.writes;
      if (page.unread?.length) throw new Error(`the server cannot read ${page.unread.map((w) => w.id).join(", ")}: ${page.unread[0]?.reason}`);
      after = page.next;
    } while (after);
  }

  /**
   * Yields the outcome of each of these writes once, when it has ended, or has a status that only a newer
   * version of this package knows. patienceMs is for one lost connection.
   */
  async *outcomes(ids: Iterable<string>, options: Options = {}): AsyncGenerator<Outcome, void, undefined> {
    const open = new Set(ids);
    const ends = (outcome: Outcome) => !hasNotEnded(outcome) && open.delete(outcome.id);
    let last: string | undefined; // the last event; what happened after it, the server still sends
    while (open.size > 0) {
      const stream = new AbortController();
      const stop = () => stream.abort(options.signal?.reason);
      options.signal?.addEventListener("abort", stop, { once: true });
      try {
        const chunks = await this.#send("GET", "/v1/events", options, undefined, (signal) => this.#events(stream, signal, last));
        let unread = 0;
        if (last === undefined) { // the stream is open: what ends from now on is in it
          const now = await this.#outcomes([...open], options);
          unread = open.size - now.length; // a limit was reached: ask again
          for (const outcome of now) if (ends(outcome)) yield outcome;
        }
        if (unread === 0 && open.size > 0) for await (const { id, event, data } of chunks) {
          last = event === "missed" ? undefined : id ?? last;
          if (event === "missed") break;
          if (event !== "outcome") continue;
          const { outcome } = JSON.parse(data) as { outcome: Outcome };
          if (ends(outcome)) yield outcome;
          if (open.size === 0) break;
        }
      } finally {
        options.signal?.removeEventListener("abort", stop);
        stream.abort();
      }
      if (open.size > 0) await sleep(1 + Math.random(), options.signal);
    }
  }

  /**
   * Decides about a write that waits for a reviewer. The token must be a reviewer's.
   * A decision is sent once, as a repeat could reach a later review: after NotKnown, get the write first.
   */
  async decide(id: string, { decision, ...rest }: Decision, options: Options = {}): Promise<Outcome> {
    const body = json({ word: decision, ...rest });
    return this.#send("POST", `/v1/writes/${encodeURIComponent(id)}/decision`, { ...options, body, once: true, has: anOutcome });
  }

  /** Names the writes of a job by their place in the program. A job that is started again makes the same calls. */
  workflow(workflow: string): { step(step: string): Step } {
    return { step: (step) => new Step(this, workflow, step) };
  }

  /** Makes a function for a model's tool. It throws for a wrong program only, before anything is sent. */
  tool<A extends Record<string, unknown>>(spec: ToolSpec<A>): (args: A, run?: Run | Step) => Promise<ToolResult> {
    return (args, run) => tool(this, spec, args, run);
  }

  async #outcomes(ids: string[], options: Options): Promise<Outcome[]> {
    const found: Outcome[] = [];
    for (let at = 0; at < ids.length; at += 100) {
      const path = `/v1/writes/batch?${query({ id: ids.slice(at, at + 100) })}`;
      const { results }: components["schemas"]["Results"] = await this.#send("GET", path, { ...options, waitMs: 0, has: ["results"] });
      for (const { outcome, problem, retry_after } of results) {
        if (problem && !retry_after) throw new Refused(problem);
        if (outcome) found.push(outcome);
      }
    }
    return found;
  }

  /** Sends the same request until it is answered, and then until the answer is done or waitMs are over. */
  async #send<T>(method: string, path: string, request: Request, done: (value: T) => boolean = () => true, ask?: (signal: AbortSignal) => Promise<Answer<T>>): Promise<T> {
    const { signal, patienceMs = this.#patienceMs, waitMs = patienceMs } = request;
    const start = performance.now(); // no clock that can be set
    let value: T | undefined;
    const left = () => start + (value === undefined ? patienceMs : waitMs) - performance.now();
    for (let first = true, pause = 1, cause: unknown, problem: Problem | undefined; ; first = false) {
      let wait: number;
      try {
        signal?.throwIfAborted();
        const answer = await this.#inTurn(left(), signal, () => {
          const seconds = Math.floor(Math.max(0, Math.min(longestWait, this.#timeoutMs / 2000, (start + waitMs - performance.now()) / 1000)));
          const end = within(Math.min(this.#timeoutMs, Math.max(left(), 0) + 5000), signal);
          return ask ? ask(end) : this.#ask<T>(method, path, request, seconds, end);
        });
        value = answer.value ?? value;
        wait = answer.retryAfter ?? 1;
        ({ problem } = answer);
        cause = undefined;
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof Refused) {
          if (value !== undefined) return value; // it is still what is known
          // What the credentials or a proxy refuse now says nothing about an earlier request.
          if (first || method === "GET" || [400, 409, 422].includes(error.problem.status ?? 0)) throw error;
          throw new NotKnown("whether an earlier request was recorded is not known", { cause: error });
        }
        if (request.once) throw new NotKnown("no answer: whether the decision was recorded is not known", { cause: error });
        cause = error; // no response: repeat the request
        wait = pause / 2;
        pause = Math.min(2 * pause, longestWait);
      }
      if (value !== undefined && done(value)) return value;
      wait *= 1 + Math.random(); // many clients lost the same server at once
      const most = left() / 1000;
      if (!(most > 0) || (wait > most && !cause)) { // a lost response is worth a last request
        if (value !== undefined) return value;
        throw new NotKnown("no answer: whether the request was recorded is not known", { cause: cause ?? problem });
      }
      await sleep(Math.min(wait, most), signal);
    }
  }

  async #ask<T>(method: string, path: string, { body, final, once, has = [] }: Request, seconds: number, signal: AbortSignal): Promise<Answer<T>> {
    const headers = new Headers(this.#headers);
    if (body) headers.set("Content-Type", "application/json");
    if (seconds > 0) headers.set("Prefer", `wait=${seconds}${final ? ", final" : ""}`);
    const response = await this.#fetch(path, { method, headers, body, signal });
    if (!response.ok) return unanswered(response, once);
    const value = await response.json();
    if (!has.every((member) => value?.[member])) throw new Error("the response is not readback's");
    return { value, retryAfter: retryAfter(response) };
  }

  /** Opens the stream of events, and reads it until it ends or is silent. */
  async #events(stream: AbortController, opening: AbortSignal, last?: string): Promise<Answer<AsyncGenerator<Event>>> {
    const headers = new Headers(this.#headers);
    headers.set("Accept", "text/event-stream");
    if (last !== undefined) headers.set("Last-Event-ID", last);
    const stop = () => stream.abort(opening.reason);
    opening.addEventListener("abort", stop, { once: true });
    try {
      const response = await this.#fetch("/v1/events", { headers, signal: stream.signal });
      return response.ok && response.body ? { value: events(response.body, stream) } : await unanswered(response);
    } finally {
      opening.removeEventListener("abort", stop);
    }
  }

  /** Runs work when fewer than atOnce requests are open. */
  async #inTurn<T>(left: number, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else {
      const end = within(left, signal);
      await new Promise<void>((go, stop) => {
        this.#queue.add(go);
        end.addEventListener("abort", () => this.#queue.delete(go) && stop(end.reason));
      });
    }
    try {
      return await work();
    } finally {
      const [next] = this.#queue;
      if (next) this.#queue.delete(next), next();
      else this.#free++;
    }
  }
}

interface Event {
  id?: string;
  event?: string;
  data: string;
}

/** Reads server-sent events until the stream ends, fails or is silent for too long. */
async function* events(body: ReadableStream<Uint8Array>, stream: AbortController): AsyncGenerator<Event, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let alarm: ReturnType<typeof setTimeout> | undefined;
  try {
    for (;;) {
      clearTimeout(alarm);
      alarm = setTimeout(() => stream.abort(), silenceMs);
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const event: Event = { data: "" };
        for (const line of part.split("\n")) {
          const [, name, field] = /^(\w+): ?(.*)$/.exec(line) ?? [];
          if (name === "id" || name === "event" || name === "data") event[name] = field ?? "";
        }
        yield event;
      }
    }
  } catch {
    // it is opened again
  } finally {
    clearTimeout(alarm);
  }
}

/** Gives an intent without a workflow the name that the header Idempotency-Key would give it. */
function named(intent: Intent): Intent {
  if (intent.workflow) return intent;
  if (!intent.idempotency_key || intent.step) {
    throw new TypeError("the write has no name: set workflow and step, or idempotency_key. Use no random value: a repeat must have the same");
  }
  return { ...intent, workflow: "http", step: intent.idempotency_key };
}

function retryAfter(response: Response): number | undefined {
  const after = response.headers.get("Retry-After") ?? "";
  return /^\d+$/.test(after) ? Math.min(Math.max(Number(after), 0.1), 3600) : undefined;
}

/** Reads a response without an answer. Throws where a repeat of the request does not help, or is not permitted. */
async function unanswered<T>(response: Response, once = false): Promise<Answer<T>> {
  const { status, statusText, headers } = response;
  const body = (await response.json().catch(() => undefined)) as Partial<Problem> | undefined;
  const problem = { ...body, status, title: body?.title ?? `${status} ${statusText}` };
  const unknown = response.ok || status === 408 || status >= 500;
  if (once) throw unknown ? new Error(problem.title) : new Refused(problem);
  if (unknown || status === 429 || headers.has("Retry-After")) return { problem, retryAfter: retryAfter(response) ?? 5 };
  if (problem.outcome && problem.recorded_digest && problem.recorded_digest === problem.received_digest) {
    return { value: problem.outcome as T }; // another write is this operation, with equal content
  }
  throw new Refused(problem);
}

function query(filter: object): URLSearchParams {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) all.append(name, String(each));
  }
  return all;
}

/** A signal after a time, or with another one. A timer takes whole milliseconds, and 31 bits. */
function within(ms: number, signal?: AbortSignal): AbortSignal {
  const timeout = AbortSignal.timeout(Math.ceil(Math.min(Math.max(ms, 0), 2 ** 31 - 1)));
  return signal ? AbortSignal.any([signal, timeout]) : timeout;
}

const env = (name: string): string | undefined => (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env[name];

function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, 1000 * seconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
