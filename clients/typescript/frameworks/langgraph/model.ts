import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { script } from "./script.js";

export function model(orders: string[], tool = "charge_card"): { invoke(messages: BaseMessage[]): Promise<AIMessage> } {
  const next = script(orders);
  return {
    async invoke(messages) {
      const turn = next(messages.filter((m) => m.type === "tool").map((m) => m.text));
      return turn === "done" ? new AIMessage("done") : new AIMessage({ content: "", tool_calls: [{ name: tool, id: turn.id, args: turn.order, type: "tool_call" }] });
    },
  };
}
