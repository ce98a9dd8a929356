import type { components, paths } from "./api.js";

type Schemas = components["schemas"];

/** What is to be written, without the tenant: that of the token. Name it by `workflow` and `step`, or by `idempotency_key`. */
export type Intent = Omit<Schemas["WriteIntent"], "tenant">;
export type Status = Schemas["Outcome"]["status"];
/** What became of a write, by its `status`. Only `verified` means that a later read found what was declared. */
export type Outcome = { [S in Status]: Omit<Schemas["Outcome"], "status"> & { status: S } }[Status];
export type Verified = Extract<Outcome, { status: "verified" }>;
/** A problem document (RFC 9457): why the server refused a request. */
export type Problem = Pick<Schemas["Problem"], "title"> & Partial<Schemas["Problem"]>;
export type Write = Schemas["Write"];
export type Filter = Omit<NonNullable<paths["/v1/writes"]["get"]["parameters"]["query"]>, "after">;
/** `digest` and `seq` are those of the write that the reviewer read: with them the decision reaches no later review. */
export type Decision = Omit<Schemas["DecisionRequest"], "word"> & { decision: Schemas["DecisionRequest"]["word"] };

// Every status of the document is here, or this does not compile.
const groups: Record<Status, "ended" | "waits" | "reviewer"> = {
  verified: "ended", not_applied: "ended", compensated: "ended", accepted: "ended", abandoned: "ended",
  denied: "ended", expired: "ended", reported: "ended",
  in_progress: "waits", unverified: "waits", entrusted: "waits",
  held: "reviewer", review: "reviewer",
};

/** Reports whether the record was read back and is as declared. */
export const isVerified = (outcome: Outcome): outcome is Verified => outcome.status === "verified";

/** Reports whether the write has ended. Not every end is a success. */
export const isDone = (outcome: Outcome): boolean => groups[outcome.status] === "ended";

/** Reports whether the write is known to continue. A newer server's status is neither this nor an end. */
export const hasNotEnded = ({ status }: Outcome): boolean => Object.hasOwn(groups, status) && groups[status] !== "ended";

/** Reports whether a reviewer must decide before the write continues. */
export const waitsForReviewer = (outcome: Outcome): boolean => groups[outcome.status] === "reviewer";

/** Returns a verified outcome, and throws NotVerified for every other. */
export function requireVerified(outcome: Outcome): Verified {
  if (!isVerified(outcome)) throw new NotVerified(outcome);
  return outcome;
}

/** The request must change, or a reviewer must help. It is no statement about an earlier call whose response was lost. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.detail ?? problem.title);
    this.problem = problem;
  }
}

/** No answer came: whether the request was recorded is not known. Repeat the same one later; make no other. */
export class NotKnown extends Error {
  override readonly name = "NotKnown";
}

/** The write has another outcome than verified. */
export class NotVerified extends Error {
  override readonly name = "NotVerified";
  readonly outcome: Outcome;
  constructor(outcome: Outcome) {
    super(`${outcome.status}: ${outcome.text}`);
    this.outcome = outcome;
  }
}
