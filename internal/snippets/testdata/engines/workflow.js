// A stub of Vercel Workflow with the semantics of its documentation (docs/foundations/errors-and-retries,
// docs/api-reference/workflow/create-hook): a step has three retries and is recorded by its place in the run;
// a FatalError ends them; the workflow begins again from the event log; a payload is for the oldest await of its
// hook, also if nothing waits for that await any more; a hook ends with its run, and has no payloads after that.
// It is imported as "workflow", as "workflow/api" and as "workflow/errors".
import { event, place, raise, run, seconds, state, step, timer } from "./runtime.js";

export class FatalError extends Error { name = "FatalError"; }

export class HookNotFoundError extends Error {
  name = "HookNotFoundError";
  static is(e) { return e?.name === "HookNotFoundError"; }
}

const maxRetries = 3;
let workflowRunId;

export const getWorkflowMetadata = () => ({ workflowRunId });
export const sleep = (time) => timer(place(), typeof time === "number" ? time / 1000 : seconds(time));
export const createHook = ({ token }) => {
  let awaited = 0;
  state.tokens[token] = true;
  return { token, then: (...then) => event((e) => e.token === token, awaited++).then(...then) };
};
export const resumeHook = async (token, payload) => {
  if (!state.tokens[token]) throw new HookNotFoundError("Hook not found");
  raise({ token, payload });
};

/** What the compiler makes of a function with "use step". */
export const asStep = (body) => (...args) =>
  step(place(), () => body(...args), 1 + maxRetries, (e) => e instanceof FatalError);

export const compiled = (code) => `import { asStep as $asStep } from "workflow";\n` + code.replace(
  /async function (\w+)\(([^)]*)\) \{\s*"use step";/g, "const $1 = $$asStep($1$$); async function $1$$($2) {");

export const drive = async ({ chargeOrder }, runId, order) => {
  workflowRunId = runId;
  const end = await run(() => chargeOrder(order));
  if (!end.waits) state.tokens = {};
  return end;
};
