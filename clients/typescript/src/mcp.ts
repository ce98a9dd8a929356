import { isDone } from "./outcome.js";
import { Calls } from "./step.js";
import type { ToolResult } from "./tool.js";

type Call = { name: string; _meta?: Record<string, unknown>; [member: string]: unknown };

interface Client {
  callTool(params: any, resultSchema?: any, options?: any): Promise<any>;
  getServerVersion(): { name: string } | undefined;
}

const tries = 3;

// Codes of the MCP SDK's errors after which a call may have been made: a closed connection, a request
// without an answer, a body that is not MCP's, and what a proxy answers. A server's own errors have others.
const unsure = (code: unknown): boolean => typeof code !== "number" || [-32000, -32001, -1, 408, 429].includes(code) || code >= 500;

/**
 * Makes an MCP client whose calls of readback's tools can be repeated. Each call has a name: the
 * workflow, the step (default: the tool), the tool, and how many calls of it came before. A call whose
 * answer is lost is made again under its name, and then is no second call; so is an equal call unless
 * the write has ended. A program that starts again makes the same calls of a tool, in the same order:
 * after one that is another, later ones are refused, as their numbers are not known.
 *
 * While a reviewer must decide, the server elicits: a client with elicitation: {url: {}} shows the
 * page of the write. Its answer decides nothing: the reviewer does that at readback.
 */
export function verified<C extends Client>(client: C, { workflow, step }: { workflow: string; step?: string }): C {
  // The server would name the calls by the session, which is another one when the program starts again.
  if (!workflow) throw new TypeError("the calls have no name: set workflow");
  const calls = new Calls();
  const changed = new Set<string>();
  const callTool = async (params: Call, resultSchema?: unknown, options?: { signal?: AbortSignal }) => {
    // Another server may carry out each repeat.
    if (!/^readback(-gateway)?$/.test(client.getServerVersion()?.name ?? "")) throw new TypeError("the client is not connected to a readback server");
    const place = step ?? params.name;
    const tool = JSON.stringify([place, params.name]); // the server names a write by its tool too
    if (changed.has(tool)) return answer("refused", "Nothing was sent: an earlier call was another one in an earlier run, so this could be done twice. Report it to the user.");
    const { call, end } = calls.take(tool, [tool, params.arguments], options?.signal);
    const named = { ...params, _meta: { "readback/workflow": workflow, "readback/step": place, "readback/call": call, ...params._meta } };
    let ended = false;
    try {
      for (let left = tries; left > 0 && !options?.signal?.aborted; left--) {
        try {
          const result = await client.callTool(named, resultSchema, options);
          const { structuredContent: outcome } = result;
          ended = outcome !== undefined && isDone(outcome);
          // Another write has this name, unless it is the operation that another write began.
          if (outcome?.status === "refused" && outcome.id && params.name !== "get_outcome" && !/ this operation /.test(outcome.text)) changed.add(tool);
          return result;
        } catch (error) {
          if (!unsure((error as { code?: unknown }).code)) throw error;
        }
      }
    } finally {
      end(ended); // an error, and an unknown status, say nothing about an earlier try
    }
    return answer("not_known", "It is not known whether this was done. Do not do it in another way, and do not call again.");
  };
  const answer = (status: ToolResult["status"], what_to_do: string) => {
    const result: ToolResult = { id: "", verified: false, status, what_to_do };
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
