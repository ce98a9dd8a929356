import type { Options, Readback } from "./client.js";
import { type Intent, isDone, type Outcome, Refused } from "./outcome.js";

/** How a call ended: its write ended, or has not; or the server refused it, as its number means another write. */
export type End = "ended" | "open" | "other";

/** Why later calls are refused then: a write that was made could get another number. */
export const otherCalls = () => new Refused({ title: "an earlier call was another one in an earlier run: give each call its own step. Nothing was sent." });

/** Numbers calls: 0, 1, … A call that has not ended keeps its number for the next one that is equal. */
export class Calls {
  readonly #next = new Map<string, number>();
  readonly #open = new Map<string, number[]>();
  readonly #other = new Set<string>();

  /**
   * Returns the number of a call among those of a name; none after a call that is another one than in an
   * earlier run. Unless the call ends, the next one with equal content gets its number.
   */
  take(name: string, content: unknown, signal?: AbortSignal): { call: number; end: (how: End) => void } | undefined {
    if (this.#other.has(name)) return undefined;
    const equal = json([name, content]);
    const [call = this.#next.get(name) ?? 0, ...others] = this.#open.get(equal) ?? []; // two at once are two writes
    this.#next.set(name, Math.max(call + 1, this.#next.get(name) ?? 0));
    if (others.length > 0) this.#open.set(equal, others);
    else this.#open.delete(equal);
    let kept = false;
    const keep = () => {
      if (!kept) this.#open.set(equal, [...(this.#open.get(equal) ?? []), call]);
      kept = true;
    };
    signal?.addEventListener("abort", keep); // at once: the program may repeat the call before this one returns
    return { call, end: (how) => {
      signal?.removeEventListener("abort", keep);
      if (how === "other") this.#other.add(name);
      if (how !== "ended") keep();
    } };
  }
}

/** The JSON of a value, equal for every order of its members. What JSON would change throws: NaN is no null. */
export const json = (value: unknown): string => JSON.stringify(value, (name, member) => {
  if (typeof member === "number" && !Number.isFinite(member)) throw new TypeError(`${name} is ${member}: JSON has no such number`);
  if (typeof member !== "object" || member === null || Array.isArray(member)) return member;
  return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)));
});

/**
 * A step of a workflow. It counts the writes of each tool: 0, 1, … in the order of the calls. Make it
 * anew where the step begins anew: the same calls are then the same writes. Equal calls at once are
 * several writes: abort the signal of a call before you repeat it.
 */
export class Step {
  readonly #rb: Readback;
  readonly #place: { workflow: string; step: string };
  readonly #calls = new Calls();

  constructor(rb: Readback, workflow: string, step: string) {
    this.#rb = rb;
    this.#place = { workflow, step };
  }

  /** Declares the next write of the step; an intent whose write has not ended is declared again. */
  async write(intent: Omit<Intent, "workflow" | "step" | "call">, options?: Options): Promise<Outcome> {
    const taken = this.#calls.take(intent.tool, intent, options?.signal); // the server names a write by its tool too
    if (!taken) throw otherCalls();
    const { call, end } = taken;
    let how: End = "open";
    try {
      const outcome = await this.#rb.write({ ...intent, ...this.#place, call }, options);
      if (isDone(outcome)) how = "ended";
      return outcome;
    } catch (error) {
      if (error instanceof Refused && error.problem.type?.endsWith("/digest-mismatch")) how = "other";
      throw error;
    } finally {
      end(how);
    }
  }
}
