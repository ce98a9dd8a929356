import { interrupt } from "@langchain/langgraph";
import type { ToolResult } from "./tool.js";
import { waits, type WriteTool } from "./wrapper.js";

export { Readback } from "./client.js";

/**
 * Makes the function of a LangGraph.js tool, or part of a node, whose write readback makes:
 * tool(verified(rb.tool({…})), {…}). The thread is the workflow.
 *
 * While a reviewer must decide, the graph is interrupted, with the write's id. invoke(null, config)
 * continues it and declares the same write again. It decides nothing: the reviewer does that at
 * readback. A value to resume with would answer the next interrupt of the same node.
 */
export function verified(write: WriteTool): (args: any, config?: any) => Promise<ToolResult> {
  return async (args, config) => {
    const run = { workflow: config?.configurable?.thread_id, signal: config?.signal };
    for (;;) {
      const result = await write(args, run);
      if (!waits(result)) return result;
      interrupt({ write: result.id, why: result.what_to_do });
    }
  };
}
