// A stub of Inngest with the semantics of its documentation (docs/features/inngest-functions/error-retries,
// docs/reference/functions/step-wait-for-event): each step.run has four retries of its own and is memoised
// by its ID; a NonRetriableError ends them; the function begins again after each step; waitForEvent returns
// the event, or null after its timeout.
import { event, raise, run, seconds, step, timer } from "./runtime.js";

export class NonRetriableError extends Error { name = "NonRetriableError"; }

const final = (e) => e instanceof NonRetriableError;
const retries = 4;

export class Inngest {
  createFunction(_, handler) { return { handler }; }
  async send(e) { raise(e); }
}

const tools = {
  run: (id, body) => step(id, body, 1 + retries, final),
  sleep: (id, time) => timer(id, seconds(time)),
  waitForEvent: (id, { event: name, if: condition, timeout }) => {
    const [, write] = condition.match(/^async\.data\.write == "(.*)"$/);
    return Promise.race([event((e) => e.name === name && e.data.write === write),
      timer(id, seconds(timeout)).then(() => null)]);
  },
};

export const drive = ({ chargeOrder }, runId, order) =>
  run(() => chargeOrder.handler({ event: { data: { order } }, runId, step: tools }));
