import type { Options, Readback } from "./client.js";
import { type Intent, isVerified, type Outcome, Refused, type Status } from "./outcome.js";
import { Step } from "./step.js";

/** Which write a tool makes of its arguments. Those that are no key are expected in the record. */
export interface ToolSpec<A extends Record<string, unknown>> {
  destination: string;
  kind: string;
  write: Intent["write"];
  tool: string;
  key: readonly (keyof A & string)[];
  /** Names the business operation, such as `charge:A-1`: a second call with this name is no second write. */
  operation?: (args: A) => string;
}

/** The place of a call in the program, with one write. A model's text and the id of its call are no place. */
export interface Run extends Options {
  workflow?: string;
  /** Default: the operation. */
  step?: string;
}

/** What a model gets, as JSON. */
export interface ToolResult {
  id: string;
  verified: boolean;
  status: Status | "refused" | "not_known";
  what_to_do: string;
}

/** The intent of a call, without its place. */
function intentOf<A extends Record<string, unknown>>({ destination, kind, write, tool, key, operation }: ToolSpec<A>, args: A): Omit<Intent, "workflow" | "step" | "call"> {
  const wrong = key.find((name) => !["string", "number", "boolean"].includes(typeof args[name]));
  if (wrong) throw new Refused({ title: "The arguments are not valid", detail: `${wrong} is missing or is no plain value` });
  const those = (inKey: boolean) => Object.fromEntries(Object.entries(args).filter(([name]) => key.includes(name) === inKey));
  return { destination, kind, write, tool, key: those(true) as Intent["key"],
    ...(write !== "delete" && { expect: those(false) as Intent["expect"] }), ...(operation && { idempotency_key: operation(args) }) };
}

/** What a model gets for an outcome. */
const resultOf = (outcome: Outcome): ToolResult =>
  ({ id: outcome.id, verified: isVerified(outcome), status: outcome.status, what_to_do: outcome.for_model });

/** What a model gets where a write threw, a cancelled one too. */
export const failureOf = (error: unknown): ToolResult => error instanceof Refused
  ? { id: error.problem.id ?? "", verified: false, status: "refused", what_to_do: `Refused: ${error.message} Do not do it in another way.` }
  : { id: "", verified: false, status: "not_known", what_to_do: "It is not known whether this was done. Do not do it in another way. A call with exactly the same arguments is safe." };

export async function tool<A extends Record<string, unknown>>(rb: Readback, spec: ToolSpec<A>, args: A, run: Run | Step = {}): Promise<ToolResult> {
  if (!(run instanceof Step) && !spec.operation && !(run.workflow && run.step)) {
    throw new TypeError(`the calls of ${spec.tool} have no name: give the tool an operation, or the run a workflow and a step`);
  }
  try {
    const intent = intentOf(spec, args);
    if (run instanceof Step) return resultOf(await run.write(intent));
    const { workflow, step = intent.idempotency_key, ...options } = run;
    return resultOf(await rb.write({ ...intent, ...(workflow && { workflow, step }) }, options));
  } catch (error) {
    return failureOf(error);
  }
}
