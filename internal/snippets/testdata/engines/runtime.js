// What the stubs of workflow engines share: the journal of one run in a file, which outlives the
// process; virtual time; and the faults of a run, which strike once.
//
//   lost   the step was made and its result is lost: it is made again (vercel/workflow#2675)
//   twice  the step is made twice at the same time, and the first result counts (vercel/workflow#3553)
//   kill   the process ends when the first response has arrived, and before its result is recorded;
//          kill:END, the first response to a request whose address ends so
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const { RUN_FILE: file } = process.env;
const [fault, end = ""] = (process.env.RUN_FAULT ?? "").split(":");
let timeouts = Number(process.env.RUN_TIMEOUTS ?? 0); // how many timers run out before the process ends

export const state = existsSync(file) ? JSON.parse(readFileSync(file, "utf8"))
  : { now: 0, steps: {}, timers: {}, tokens: {}, events: [], past: 0, struck: false, attempts: 1 };
export const save = () => writeFileSync(file, JSON.stringify(state));
process.on("exit", save);

if (fault === "kill" && !state.struck) {
  const real = globalThis.fetch;
  globalThis.fetch = async (...args) => {
    const response = await real(...args);
    if (!args[0].endsWith(end)) return response;
    state.struck = true;
    process.exit(137);
  };
}

/** Makes a step, with the fault of the run. */
export async function faulted(body) {
  if (state.struck || fault === "kill" || fault === "") return body();
  state.struck = true;
  if (fault === "twice") return Promise.race(await both(body));
  await body(); // lost
  return body();
}

// The two are compared only after both have ended, so that none is cut off.
async function both(body) {
  const made = [body(), body()];
  await Promise.allSettled(made);
  return made;
}

let replay;
const never = new Promise(() => {});
const suspend = (waits) => {
  const now = replay;
  now.pending.push(waits);
  setImmediate(() => now.steps === 0 && now.wake()); // a step that runs wakes it at its end
  return never;
};

/** The key of a call, by its place in the run. */
export const place = () => `#${replay.places++}`;

/**
 * A journaled step. Once its result is recorded, the run begins again and gets it from the journal. A
 * failed step is repeated until its attempts are used up, or the error is final.
 */
export async function step(key, body, attempts, final) {
  const made = state.steps[key];
  if (made) {
    passes();
    if (made.error) throw Object.assign(new Error(made.error), { name: made.name });
    return made.value;
  }
  replay.steps++;
  for (let attempt = 1; !state.steps[key]; attempt++) {
    try {
      state.steps[key] = { value: (await faulted(body)) ?? null };
    } catch (e) {
      if (attempt >= attempts || final(e)) state.steps[key] = { error: e.message, name: e.name };
    }
  }
  replay.steps--;
  save();
  return suspend({ step: true });
}

/** A durable timer. */
export async function timer(key, seconds) {
  const until = (state.timers[key] ??= state.now + seconds);
  return state.now >= until ? passes() : suspend({ until });
}

/** The nth event that matches, at its place in the history. Waiting for it suspends the run. */
export function event(matches, n = 0) {
  const found = state.events.filter(matches)[n];
  if (!found) return suspend({ event: true });
  return new Promise((resolve) => {
    if (found.after <= replay.past) resolve(found);
    else replay.arrivals.push({ found, resolve });
  });
}

/** Adds an event to the history of the run. */
export const raise = (e) => state.events.push({ ...e, after: state.past });

// passes counts what the replay has reached of the history, and delivers the events that follow.
function passes() {
  state.past = Math.max(state.past, ++replay.past);
  for (const { found, resolve } of replay.arrivals) if (found.after <= replay.past) resolve(found);
}

/** Runs a function that replays, from the journal, until it ends or waits for an event. */
export async function run(start) {
  for (;;) {
    let woken;
    const suspended = new Promise((wake) => { woken = wake; });
    replay = { pending: [], arrivals: [], places: 0, steps: 0, past: 0, wake: woken };
    const end = await Promise.race([suspended, start().then((value) => ({ value }), (error) => ({ error }))]);
    if (end) return end;
    if (replay.pending.some((p) => p.step)) continue;
    const next = Math.min(...replay.pending.flatMap((p) => p.until ?? []));
    if (next - state.now < 3600) await rest();
    else if (!mayTimeOut()) return { waits: true }; // the timer of a wait for a decision
    state.now = next;
    save();
  }
}

/** Real time, in which the server can get on: virtual time asks it again at once. */
export const rest = () => new Promise((done) => setTimeout(done, 100));

/** Whether one more timer runs out while an event is awaited. */
export const mayTimeOut = () => timeouts-- > 0;

/** "55m" and the like, in seconds. */
export const seconds = (text) => parseInt(text, 10) * { s: 1, m: 60, h: 3600, d: 86400 }[text.at(-1)];
