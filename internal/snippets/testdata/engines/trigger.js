// A stub of Trigger.dev with the semantics of its documentation (docs/runs-and-attempts, docs/wait-for-token,
// docs/management/waitpoints/create): an attempt that ends with an error is followed by another, up to
// three, from the beginning of run and with the same run ID; an AbortTaskRunError ends the run; a token with the
// idempotency key of an earlier one is the earlier one, until the key's time is up, completed or not.
// A process that ends while it waits is restored here as a new attempt, as after a lost checkpoint.
import { faulted, mayTimeOut, rest, save, seconds, state } from "./runtime.js";

export class AbortTaskRunError extends Error { name = "AbortTaskRunError"; }

class Waits extends Error {}

export const task = (definition) => definition;

export const wait = {
  async for({ seconds }) {
    state.now += seconds;
    save();
    await rest();
  },
  async createToken({ idempotencyKey, idempotencyKeyTTL, timeout }) {
    const known = state.tokens[idempotencyKey];
    if (known && state.now < known.forgotten) return known;
    return state.tokens[idempotencyKey] = { id: idempotencyKey, forgotten: state.now + seconds(idempotencyKeyTTL),
      until: state.now + seconds(timeout), completed: false };
  },
  async forToken(token) {
    if (token.completed) return { ok: true };
    if (state.now < token.until) {
      if (!mayTimeOut()) throw new Waits();
      state.now = token.until;
    }
    return { ok: false };
  },
  async completeToken(token) { token.completed = true; },
};

const maxAttempts = 3;

export async function drive({ chargeOrder }, id, order) {
  for (;; state.attempts++) {
    try {
      const attempt = () => chargeOrder.run({ order }, { ctx: { run: { id }, attempt: { number: state.attempts } } });
      return { value: await faulted(attempt) };
    } catch (error) {
      if (error instanceof Waits) return { waits: true };
      if (error instanceof AbortTaskRunError || state.attempts >= maxAttempts) return { error };
    } finally {
      save();
    }
  }
}
