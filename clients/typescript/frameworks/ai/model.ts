import { MockLanguageModelV4 } from "ai/test";
import { script } from "./script.js";

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };

export function model(orders: string[], tool = "charge_card"): MockLanguageModelV4 {
  const next = script(orders);
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const results = prompt.flatMap((message) => (message.role === "tool" ? message.content : []));
      const turn = next(results.flatMap((part) => (part.type === "tool-result" && "value" in part.output ? [JSON.stringify(part.output.value)] : [])));
      return turn === "done"
        ? { content: [{ type: "text", text: "done" }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] }
        : { content: [{ type: "tool-call", toolCallId: turn.id, toolName: tool, input: JSON.stringify(turn.order) }],
            finishReason: { unified: "tool-calls", raw: "tool_calls" }, usage, warnings: [] };
    },
  });
}

/** A model whose provider fails once, after the first call of a tool. */
export function failing(orders: string[], tool: string): MockLanguageModelV4 {
  const works = model(orders, tool);
  let turns = 0;
  return new MockLanguageModelV4({
    doGenerate: async (options) => {
      if (++turns === 2) throw new Error("the provider is overloaded");
      return works.doGenerate(options);
    },
  });
}
