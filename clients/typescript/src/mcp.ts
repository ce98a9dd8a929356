import { isDone } from "./outcome.js";
import { Calls, type End, otherCalls } from "./step.js";
import { failureOf } from "./tool.js";

type Call = { name: string; _meta?: Record<string, unknown>; [member: string]: unknown };

interface Client {
  callTool(params: any, resultSchema?: any, options?: any): Promise<any>;
  getServerVersion(): { name: string } | undefined;
}

const tries = 3;

// Codes of the MCP SDK's errors after which a call may have been made: a closed connection, a request
// without an answer, a body that is not MCP's, and what a proxy answers. A server's own errors have others.
const unsure = (code: unknown): boolean => typeof code !== "number" || [-32000, -32001, -1, 408, 429].includes(code) || code >= 500;

function endOf({ name }: Call, outcome?: any): End {
  if (outcome && isDone(outcome)) return "ended";
  // The id is that of the write with the same name, or of one that began the same operation.
  return outcome?.status === "refused" && outcome.id && name !== "get_outcome" && !/ this operation /.test(outcome.text) ? "other" : "open";
}

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
  const callTool = async (params: Call, resultSchema?: unknown, options?: { signal?: AbortSignal }) => {
    // Another server may carry out each repeat.
    if (!/^readback(-gateway)?$/.test(client.getServerVersion()?.name ?? "")) throw new TypeError("the client is not connected to a readback server");
    const place = step ?? params.name;
    const taken = calls.take(JSON.stringify([place, params.name]), params.arguments, options?.signal); // the server names a write by its tool too
    if (!taken) return failure(otherCalls());
    const { call, end } = taken;
    const named = { ...params, _meta: { "readback/workflow": workflow, "readback/step": place, "readback/call": call, ...params._meta } };
    let how: End = "open"; // an error, and an unknown status, say nothing about an earlier try
    try {
      for (let left = tries; left > 0 && !options?.signal?.aborted; left--) {
        try {
          const result = await client.callTool(named, resultSchema, options);
          how = endOf(params, result.structuredContent);
          return result;
        } catch (error) {
          if (!unsure((error as { code?: unknown }).code)) throw error;
        }
      }
    } finally {
      end(how);
    }
    return failure(undefined);
  };
  const failure = (error: unknown) => {
    const result = failureOf(error);
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
