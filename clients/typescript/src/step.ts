import type { Options, Readback } from "./client.js";
import { type Intent, isDone, type Outcome } from "./outcome.js";

/**
 * A step of a workflow. It counts the writes of each tool: 0, 1, … in the order of the calls. Make it
 * anew where the step begins anew: the same calls are then the same writes.
 */
export class Step {
  readonly #rb: Readback;
  readonly workflow: string;
  readonly step: string;
  readonly #calls = new Map<string, number>(); // by tool: a call of another one in between changes no name
  readonly #open = new Map<string, number[]>();

  constructor(rb: Readback, workflow: string, step: string) {
    this.#rb = rb;
    this.workflow = workflow;
    this.step = step;
  }

  /** Declares the next write of the step; an intent whose write has not ended is declared again. */
  async write(intent: Omit<Intent, "workflow" | "step" | "call">, options?: Options): Promise<Outcome> {
    const same = JSON.stringify(intent);
    const open = this.#open.get(same) ?? [];
    this.#open.set(same, open);
    let call = open.shift(); // two at once are two writes
    if (call === undefined) {
      call = this.#calls.get(intent.tool) ?? 0;
      this.#calls.set(intent.tool, call + 1);
    }
    let outcome: Outcome | undefined;
    try {
      outcome = await this.#rb.write({ ...intent, workflow: this.workflow, step: this.step, call }, options);
      return outcome;
    } finally {
      if (!outcome || !isDone(outcome)) open.push(call);
    }
  }
}
