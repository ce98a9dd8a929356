import { hasNotEnded } from "./outcome.js";
import { Calls } from "./step.js";
import type { ToolResult } from "./tool.js";

type Call = { name: string; _meta?: Record<string, unknown>; [member: string]: unknown };

interface Client {
  callTool(params: any, resultSchema?: any, options?: any): Promise<any>;
  getServerVersion(): { name: string } | undefined;
}

const tries = 3;

// JSON-RPC errors of the MCP SDK that say that no answer came.
const connectionClosed = -32000;
const requestTimeout = -32001;

/**
 * Makes an MCP client whose calls of readback's tools can be repeated. Each call has a name: the
 * workflow, the step (default: the tool), and how many calls of the step came before. A call whose
 * answer is lost is made again under its name, and then is no second call; so is an equal call while
 * the write has not ended. A program that starts again makes the same calls, in the same order.
 *
 * While a reviewer must decide, the server elicits: a client with elicitation: {url: {}} shows the
 * page of the write. Its answer decides nothing: the reviewer does that at readback.
 */
export function verified<C extends Client>(client: C, { workflow, step }: { workflow: string; step?: string }): C {
  const calls = new Calls();
  const callTool = async (params: Call, resultSchema?: unknown, options?: { signal?: AbortSignal }) => {
    // Another server may carry out each repeat.
    if (!/^readback(-gateway)?$/.test(client.getServerVersion()?.name ?? "")) throw new TypeError("the client is not connected to a readback server");
    const place = step ?? params.name;
    const { call, again } = calls.take(place, JSON.stringify([place, params]));
    const named = { ...params, _meta: { "readback/workflow": workflow, "readback/step": place, "readback/call": call, ...params._meta } };
    for (let left = tries; left > 0 && !options?.signal?.aborted; left--) {
      try {
        const result = await client.callTool(named, resultSchema, options);
        if (hasNotEnded(result.structuredContent?.status)) again();
        return result;
      } catch (error) {
        const code = (error as { code?: unknown }).code;
        if (typeof code === "number" && code !== connectionClosed && code !== requestTimeout) throw error;
      }
    }
    again();
    const result: ToolResult = { id: "", verified: false, status: "not_known", what_to_do: "It is not known whether this was done. Do not do it in another way, and do not call again." };
    return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result };
  };
  return new Proxy(client, {
    get: (target, name) => {
      if (name === "callTool") return callTool;
      const member = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
