// Lists the tools as the client of the page does, and has ajv compile every schema
// strictly: what a client of another make cannot read fails here.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";

const client = new Client({ name: "schemas", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(`${process.env.READBACK_URL}/mcp`), {
  requestInit: { headers: { Authorization: `Bearer ${process.env.READBACK_TOKEN}` } },
}));
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
formats.default(ajv);
for (const tool of (await client.listTools()).tools) {
  const accepts = ajv.compile(tool.inputSchema);
  ajv.compile(tool.outputSchema);
  console.log(tool.name, accepts({ order_id: "A-1", amount_cents: 1 }), accepts({ order_id: "A-1" }), accepts({ id: "wr_1" }));
}
await client.close();
