// Stand-ins for engines that need a server. Each does to a program what the report describes.

interface Task<P> {
  id: string;
  run: (payload: P, params: { ctx: { run: { id: string } } }) => Promise<unknown>;
}

/** trigger.dev: a run that fails is run again, from the top. */
export function task<P>({ id, run }: Task<P>): { trigger(payload: P): Promise<unknown> } {
  let runs = 0;
  return {
    async trigger(payload) {
      const params = { ctx: { run: { id: `run_${id}_${++runs}` } } };
      return run(payload, params).catch(() => run(payload, params));
    },
  };
}

type Step = { stepId: string; workflowRunId: string };
let steps = 0;
let running: Step | undefined;

/** Vercel Workflow: the step that runs. */
export const getStepMetadata = (): Step => running!;

function dispatch<P>(step: (payload: P) => Promise<unknown>, payload: P, metadata: Step): Promise<unknown> {
  running = metadata;
  return step(payload); // a step asks for its metadata before it waits
}

const next = (): Step => ({ stepId: `step_${++steps}`, workflowRunId: "wrun_1" });

/** A step that lasts long is dispatched twice at once. */
export function twiceAtOnce<P>(step: (payload: P) => Promise<unknown>, payload: P): Promise<unknown> {
  const metadata = next();
  return Promise.all([dispatch(step, payload, metadata), dispatch(step, payload, metadata)]);
}

/** The record of a step's end is lost, and the step is run again. */
export async function endIsLost<P>(step: (payload: P) => Promise<unknown>, payload: P): Promise<unknown> {
  const metadata = next();
  await dispatch(step, payload, metadata);
  return dispatch(step, payload, metadata);
}

/** Fails once for each order. */
const seen = new Set<string>();
export async function mail(order: { order_id: string }): Promise<void> {
  if (!seen.has(order.order_id)) {
    seen.add(order.order_id);
    throw new Error("the mail server does not answer");
  }
}
