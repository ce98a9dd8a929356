import { script } from "./script.js";

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

export function model(orders: string[], tool = "charge_card") {
  const next = script(orders);
  return {
    specificationVersion: "v2" as const, provider: "scripted", modelId: "scripted", supportedUrls: {},
    async doGenerate({ prompt }: { prompt: { role: string; content: any }[] }) {
      const results = prompt.filter(({ role }) => role === "tool").flatMap(({ content }) => content);
      const turn = next(results.map(({ output }) => (typeof output.value === "string" ? output.value : JSON.stringify(output.value))));
      return turn === "done"
        ? { content: [{ type: "text" as const, text: "done" }], finishReason: "stop" as const, usage, warnings: [] }
        : { content: [{ type: "tool-call" as const, toolCallId: turn.id, toolName: tool, input: JSON.stringify(turn.order) }],
            finishReason: "tool-calls" as const, usage, warnings: [] };
    },
    async doStream(): Promise<never> {
      throw new Error("not used");
    },
  };
}
