export { type Config, type Options, Readback } from "./client.js";
export * from "./outcome.js";
export { Step } from "./step.js";
export type { Run, ToolResult, ToolSpec } from "./tool.js";
