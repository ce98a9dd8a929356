import type { Options, Readback } from "./client.js";
import { type Intent, isDone, type Outcome, Refused } from "./outcome.js";

/** Numbers calls: 0, 1, … A call that has not ended keeps its number for the next one that is equal. */
export class Calls {
  readonly #next = new Map<string, number>();
  readonly #open = new Map<string, number[]>();

  /** Returns the number of a call among those of a name. Unless the call ends, the next one with equal content gets it. */
  take(name: string, content: unknown, signal?: AbortSignal): { call: number; end: (ended: boolean) => void } {
    const equal = json(content);
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
    return { call, end: (ended) => {
      signal?.removeEventListener("abort", keep);
      if (!ended) keep();
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
  #changed = false;

  constructor(rb: Readback, workflow: string, step: string) {
    this.#rb = rb;
    this.#place = { workflow, step };
  }

  /** Declares the next write of the step; an intent whose write has not ended is declared again. */
  async write(intent: Omit<Intent, "workflow" | "step" | "call">, options?: Options): Promise<Outcome> {
    if (this.#changed) { // a write that was made could get another number
      throw new Refused({ title: "an earlier call of this step was another one in an earlier run: give each call its own step; nothing was sent" });
    }
    const { call, end } = this.#calls.take(intent.tool, intent, options?.signal); // the server names a write by its tool too
    let outcome: Outcome | undefined;
    try {
      outcome = await this.#rb.write({ ...intent, ...this.#place, call }, options);
      return outcome;
    } catch (error) {
      this.#changed ||= error instanceof Refused && !!error.problem.type?.endsWith("/digest-mismatch");
      throw error;
    } finally {
      end(outcome !== undefined && isDone(outcome));
    }
  }
}
