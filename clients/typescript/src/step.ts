import type { Options, Readback } from "./client.js";
import { type Intent, isDone, type Outcome } from "./outcome.js";

/** Numbers calls: 0, 1, … A call that has not ended keeps its number for the next one that is equal. */
export class Calls {
  readonly #next = new Map<string, number>();
  readonly #open = new Map<string, number[]>();

  /** Returns the number of a call among those of a name. again gives it to the next equal call. */
  take(name: string, equal: string): { call: number; again: () => void } {
    const open = this.#open.get(equal) ?? [];
    this.#open.set(equal, open);
    let call = open.shift(); // two at once are two writes
    if (call === undefined) {
      call = this.#next.get(name) ?? 0;
      this.#next.set(name, call + 1);
    }
    const taken = call;
    return { call, again: () => open.push(taken) };
  }
}

/**
 * A step of a workflow. It counts the writes of each tool: 0, 1, … in the order of the calls. Make it
 * anew where the step begins anew: the same calls are then the same writes.
 */
export class Step {
  readonly #rb: Readback;
  readonly workflow: string;
  readonly step: string;
  readonly #calls = new Calls();

  constructor(rb: Readback, workflow: string, step: string) {
    this.#rb = rb;
    this.workflow = workflow;
    this.step = step;
  }

  /** Declares the next write of the step; an intent whose write has not ended is declared again. */
  async write(intent: Omit<Intent, "workflow" | "step" | "call">, options?: Options): Promise<Outcome> {
    const { call, again } = this.#calls.take(intent.tool, JSON.stringify(intent)); // the server names a write by its tool too
    let outcome: Outcome | undefined;
    try {
      outcome = await this.#rb.write({ ...intent, workflow: this.workflow, step: this.step, call }, options);
      return outcome;
    } finally {
      if (!outcome || !isDone(outcome)) again();
    }
  }
}
