export { type Config, type Options, Readback } from "./client.js";
export {
  type Decision, type Filter, type Intent, isDone, isVerified, NotKnown, NotVerified, type Outcome, type Problem, Refused, requireVerified,
  type Status, type Verified, waitsForReviewer, type Write,
} from "./outcome.js";
export type { Step } from "./step.js";
export type { Run, ToolResult, ToolSpec } from "./tool.js";
