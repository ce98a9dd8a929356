import type { Run, ToolResult } from "./tool.js";
import { type Verified, waits, type WriteTool } from "./wrapper.js";

export { Readback } from "./client.js";

/** Zod's and other schemas (standardschema.dev). The SDK checks no JSON Schema. */
interface Schema {
  "~standard"?: { validate(value: unknown): { issues?: unknown } | Promise<{ issues?: unknown }> };
}

type Approval = boolean | ((context: any, args: any, callId?: string) => Promise<boolean>);

/** What this replaces in the options of a tool of the OpenAI Agents SDK. */
export interface Replaced {
  needsApproval: (context: any, args: any, callId?: string) => Promise<boolean>;
  execute: (args: any, context?: { context: unknown }, details?: { signal?: AbortSignal }) => Promise<ToolResult>;
}

/**
 * Makes a tool of the OpenAI Agents SDK whose write readback makes: tool(verified({…}, rb.tool({…}))).
 * The tool's own execute is not called. run names the run from the context that the program gives to
 * the runner; without it the operation is the whole name of a write.
 *
 * While a reviewer must decide, the run has an interruption. Approving it continues the run and
 * declares the same write again. It decides nothing, nor does rejecting it: the reviewer does that at
 * readback.
 */
export function verified<T extends object>(tool: T, write: WriteTool, run: (context: any) => Run = () => ({})): Verified<T, Replaced> {
  const execute: Replaced["execute"] = (args, context, details) => {
    const named = run(context?.context);
    return write(args, { ...named, signal: details?.signal ?? named.signal });
  };
  const { needsApproval: asks, inputGuardrails = [], parameters } = tool as { needsApproval?: Approval; inputGuardrails?: unknown[]; parameters?: Schema };
  return {
    ...tool,
    outputSchema: undefined,
    execute,
    needsApproval: async (context, args, callId) => {
      if (await (typeof asks === "function" ? asks(context, args, callId) : asks)) return true;
      // The SDK asks about arguments without the tool's schema too, and then does not call the tool.
      if ((await parameters?.["~standard"]?.validate(args))?.issues) return false;
      // Guardrails of the tool run after this, and must see a call before it has an effect.
      return inputGuardrails.length === 0 && waits(await execute(args, context));
    },
  };
}
