import { type Model, setTracingDisabled, Usage } from "@openai/agents";
import { script } from "./script.js";

setTracingDisabled(true);

export function model(orders: string[], tool = "charge_card"): Model {
  const next = script(orders);
  return {
    async getResponse({ input }) {
      const results = typeof input === "string" ? [] : input.filter((item) => item.type === "function_call_result");
      const turn = next(results.map(({ output }) => (typeof output === "string" ? output : !Array.isArray(output) && output.type === "text" ? output.text : JSON.stringify(output))));
      return {
        usage: new Usage({ requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 }),
        output: [turn === "done"
          ? { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "done" }] }
          : { type: "function_call", callId: turn.id, name: tool, status: "completed", arguments: JSON.stringify(turn.order) }],
      };
    },
    async *getStreamedResponse() {},
  };
}
