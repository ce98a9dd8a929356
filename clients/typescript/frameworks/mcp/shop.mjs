// The two MCP servers of the tests: one before the shop, and readback's, by its configuration.
import { serve } from "./build/server.js";

/** An MCP server whose HTTP client repeats a request so often. Its address is in SHOP_MCP_URL. */
export async function shop(t, retries) {
  const server = await serve(retries);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  process.env.SHOP_MCP_URL = `http://127.0.0.1:${server.address().port}/`;
}

/** readback's tool. */
export const tools = ({ operation = true } = {}) => `mcp:
  tools:
    - name: create_order
      description: Creates an order.
      destination: orders
      kind: order
      write: create
      arguments:
        - {name: order_id, type: string, required: true, description: The number of the order.}
        - {name: amount_cents, type: integer, required: true, description: The amount in cents.}
      key: [order_id]
${operation ? "      operation: [order_id]\n" : ""}`;
