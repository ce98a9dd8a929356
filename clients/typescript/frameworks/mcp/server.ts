import { createServer, type Server } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";
import { post } from "./shop.js";

/** A usual MCP server before the shop. Its client repeats a request as often as retries says. */
export async function serve(retries: number): Promise<Server> {
  const server = createServer(async (request, response) => {
    const mcp = new McpServer({ name: "shop", version: "1.0.0" });
    mcp.registerTool("create_order", { description: "Creates an order.", inputSchema: { order_id: z.string(), amount_cents: z.number().int() } }, async (order) => {
      for (let left = retries; ; left--) {
        try {
          return { content: [{ type: "text", text: await post(order) }] };
        } catch (error) {
          if (left === 0) throw error;
        }
      }
    });
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on("close", () => void mcp.close());
    await mcp.connect(transport as Parameters<typeof mcp.connect>[0]);
    await transport.handleRequest(request, response);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return server;
}
