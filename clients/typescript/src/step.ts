import type { Options, Readback } from "./client.js";
import { type Intent, isDone, type Outcome } from "./outcome.js";

/**
 * A step of a workflow. It counts its writes: 0, 1, … in the order of the calls. Make it anew where
 * the step begins anew: the same calls are then the same writes.
 */
export class Step {
  readonly #rb: Readback;
  readonly workflow: string;
  readonly step: string;
  #calls = 0;
  readonly #open = new Map<string, number>();

  constructor(rb: Readback, workflow: string, step: string) {
    this.#rb = rb;
    this.workflow = workflow;
    this.step = step;
  }

  /** Declares the next write of the step; an intent whose write has not ended is declared again. */
  async write(intent: Omit<Intent, "workflow" | "step" | "call">, options?: Options): Promise<Outcome> {
    const same = JSON.stringify(intent);
    const call = this.#open.get(same) ?? this.#calls++;
    this.#open.delete(same); // two at once are two writes
    let outcome: Outcome | undefined;
    try {
      outcome = await this.#rb.write({ ...intent, workflow: this.workflow, step: this.step, call }, options);
      return outcome;
    } finally {
      if (!outcome || !isDone(outcome)) this.#open.set(same, call);
    }
  }
}
