import type { Run, ToolResult } from "./tool.js";
import { type Verified, waits, type WriteTool } from "./wrapper.js";

export { Readback } from "./client.js";

type Approval = boolean | ((args: any, options: any) => boolean | PromiseLike<boolean>);

/** What this replaces in a tool of the AI SDK. */
export interface Replaced {
  needsApproval: (args: any, options: any) => Promise<boolean>;
  execute: (args: any, options: { abortSignal?: AbortSignal }) => Promise<ToolResult>;
}

/**
 * Makes a tool of the Vercel AI SDK whose write readback makes: tool(verified({…}, rb.tool({…}))).
 * The tool's own execute is not called. The run has no id in this SDK: give one, or the operation is
 * the whole name of a write.
 *
 * While a reviewer must decide, the SDK asks for an approval of the call. An approval continues the
 * run and declares the same write again. It decides nothing, nor does a rejection: the reviewer does
 * that at readback.
 */
export function verified<T extends object>(tool: T, write: WriteTool, run: Run = {}): Verified<T, Replaced> {
  const execute: Replaced["execute"] = (args, { abortSignal }) => write(args, { ...run, signal: abortSignal ?? run.signal });
  const asks = (tool as { needsApproval?: Approval }).needsApproval;
  return {
    ...tool,
    outputSchema: undefined,
    toModelOutput: undefined,
    execute,
    // The SDK asks before each call, and calls at once if none is needed.
    needsApproval: async (args, options) => (await (typeof asks === "function" ? asks(args, options) : asks)) || waits(await execute(args, options)),
  };
}
