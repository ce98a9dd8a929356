import { script } from "./script.js";

interface Client {
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<any>;
}

/** Runs the model's calls through a client. */
export async function agent(client: Client, orders: string[]): Promise<string[]> {
  const next = script(orders);
  const results: string[] = [];
  for (let turn = next(results); turn !== "done"; turn = next(results)) {
    const { content } = await client.callTool({ name: "create_order", arguments: { ...turn.order } });
    results.push(content[0].text);
  }
  return results;
}
