// Checked by tsc --strict, not run: what a program may write, and what it may not.
import { type Intent, isDone, isVerified, NotVerified, type Outcome, Readback, Refused, requireVerified, type Status, type ToolResult, waitsForReviewer } from "readback";
import { verified } from "readback/ai";
import type { components } from "readback/api";
import { verifyWebhook } from "readback/webhook";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same: Equal<Outcome["status"], components["schemas"]["Outcome"]["status"]> = true;
const listed: Equal<Status, "verified" | "not_applied" | "compensated" | "accepted" | "abandoned" | "review" | "held"
  | "in_progress" | "unverified" | "denied" | "expired" | "entrusted" | "reported"> = true;

export async function program(rb: Readback, signal: AbortSignal): Promise<string | undefined> {
  const intent: Intent = {
    workflow: "run-7", step: "charge", tool: "charge_card", destination: "orders", kind: "order", write: "create",
    key: { order_id: "A-1" }, expect: { amount_cents: 1999, note: null, customer: { name: "Ada", tags: ["a", 1, true] } },
  };
  // @ts-expect-error: the tenant is that of the token
  const owned: Intent = { ...intent, tenant: "acme" };
  // @ts-expect-error: a step counts its writes
  await rb.workflow("run-7").step("charge").write({ ...intent, call: 1 });
  // @ts-expect-error: no such write
  const wrong: Intent = { ...intent, write: "insert" };
  const outcome = await rb.write(intent, { signal, patienceMs: 1000 });
  switch (outcome.status) {
    case "verified": {
      const status: "verified" = outcome.status;
      return requireVerified(outcome).ref ?? status;
    }
    case "held": case "review": return outcome.review_url;
    case "in_progress": return outcome.waits_for;
    // @ts-expect-error: no such status
    case "done": return;
  }
  if (isVerified(outcome) || isDone(outcome) || waitsForReviewer(outcome)) return outcome.refusal?.message;
  const charge = rb.tool<{ order_id: string; amount_cents: number }>({
    destination: "orders", kind: "order", write: "create", tool: "charge_card", key: ["order_id"], operation: (a) => `charge:${a.order_id}`,
  });
  const result: ToolResult = await charge({ order_id: "A-1", amount_cents: 1999 }, { workflow: "run-7" });
  // @ts-expect-error: a step counts the calls of rb.tool's function; a wrapper's run has no count
  verified({}, charge, rb.workflow("run-7").step("charge"));
  // @ts-expect-error: the amount is missing
  await charge({ order_id: "A-1" });
  for await (const write of rb.writes({ status: ["review"], limit: 10 })) await rb.decide(write.id, { decision: "accept", reason: "seen", seq: write.seq });
  for await (const each of rb.outcomes([outcome.id], { signal })) console.log(each.text);
  const error: unknown = new Error();
  if (error instanceof Refused) return error.problem.detail;
  if (error instanceof NotVerified) return error.outcome.id;
  return verifyWebhook("{}", new Headers(), "whsec_").data.status ?? String([same, listed, owned, wrong, result]);
}
