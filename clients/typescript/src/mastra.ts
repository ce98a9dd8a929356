import type { ToolResult } from "./tool.js";
import { type Verified, waits, type WriteTool } from "./wrapper.js";

export { Readback } from "./client.js";

interface Suspends {
  suspend?: (payload: any) => Promise<any>;
}

interface Context {
  abortSignal?: AbortSignal;
  workflow?: Suspends & { runId: string; workflowId: string };
  agent?: Suspends & { threadId?: string };
}

// A step of a workflow needs one.
const outputSchema = {
  type: "object",
  properties: { id: { type: "string" }, verified: { type: "boolean" }, status: { type: "string" }, what_to_do: { type: "string" } },
  required: ["id", "verified", "status", "what_to_do"],
} as const;

/** What this replaces in the options of a Mastra tool. */
export interface Replaced {
  outputSchema: any;
  suspendSchema: undefined;
  resumeSchema: undefined;
  execute: (args: any, context?: any) => Promise<ToolResult | undefined>;
}

/**
 * Makes a tool of Mastra whose write readback makes: createTool(verified({…}, rb.tool({…}))). The
 * tool's own execute is not called. The workflow is the run of a Mastra workflow, or the thread of an
 * agent; where there is neither, the operation is the whole name of a write.
 *
 * While a reviewer must decide, the run is suspended, with the write's id. To resume it with any data
 * declares the same write again. It decides nothing: the reviewer does that at readback.
 */
export function verified<T>(tool: T, write: WriteTool): Verified<T, Replaced> {
  return {
    ...tool,
    outputSchema,
    toModelOutput: undefined,
    suspendSchema: undefined,
    resumeSchema: undefined,
    execute: async (args: any, { abortSignal, workflow, agent }: Context = {}) => {
      const result = await write(args, { workflow: agent ? agent.threadId : workflow && `${workflow.workflowId}:${workflow.runId}`, signal: abortSignal });
      const suspend = (agent ?? workflow)?.suspend;
      return waits(result) && suspend ? suspend({ write: result.id, why: result.what_to_do }) : result;
    },
  };
}
