import assert from "node:assert/strict";
import test from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { beforeAndAfter, held, place } from "../wrapper.mjs";
import { verified } from "./node_modules/readback/dist/mcp.js";
import { shop, tools } from "./shop.mjs";

test("the plain client charges twice, the verified one once", async (t) => {
  await shop(t, 0);
  await beforeAndAfter(t, "mcp", { effects: 2, lost: 1, options: { config: tools() } });
});

/** A client of readback's MCP server. */
async function connected(t, w, { capabilities = {}, fetch } = {}) {
  const client = new Client({ name: "clerk", version: "1.0.0" }, { capabilities });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${w.url}/mcp`), { fetch, requestInit: { headers: { Authorization: `Bearer ${w.agent}` } } }));
  t.after(() => client.close());
  return client;
}

const order = { name: "create_order", arguments: { order_id: "A-1", amount_cents: 1999 } };

const numbered = (order_id) => ({ ...order, arguments: { ...order.arguments, order_id } });

test("a held write is an elicitation, and its answer sends nothing", async (t) => {
  const w = await place(t, { config: tools() + held.config });
  const client = await connected(t, w, { capabilities: { elicitation: { url: {} } } });
  const shown = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    shown.push(params);
    return { action: "accept" };
  });
  const calls = verified(client, { workflow: "invoices-7" });
  const { structuredContent: stopped } = await calls.callTool(order);
  assert.deepEqual([stopped.status, stopped.verified, shown.length, shown[0]?.mode], ["held", false, 1, "url"]);
  assert.equal(await w.effects("A-1"), 0);
  await w.approve(stopped.id);
  const { structuredContent: done } = await verified(client, { workflow: "invoices-7" }).callTool(order); // it starts again
  assert.deepEqual([done.id, done.status, await w.effects("A-1")], [stopped.id, "verified", 1]);
  const { structuredContent: later } = await calls.callTool(order); // it had not ended
  assert.deepEqual([later.id, later.status, await w.effects("A-1")], [stopped.id, "verified", 1]);
});

test("a call that had no answer, made again, is the same write", async (t) => {
  const w = await place(t, { config: tools({ operation: false }) });
  const named = [];
  const lost = [
    () => { throw new TypeError("fetch failed"); },
    () => new Response("<html>a proxy", { status: 502 }),
    () => new Response("<html>a proxy", { headers: { "Content-Type": "text/html" } }),
    () => { throw new TypeError("fetch failed"); },
    () => new Response("no such session", { status: 404 }),
  ];
  const client = await connected(t, w, { fetch: async (url, init) => {
    const response = await fetch(url, init);
    if (!init?.body?.includes("tools/call")) return response;
    named.push(JSON.parse(init.body).params._meta["readback/call"]);
    if (lost.length === 0) return response;
    await response.text();
    return lost.shift()();
  } });
  const calls = verified(client, { workflow: "invoices-7" });
  const { structuredContent: none } = await calls.callTool(order);
  await assert.rejects(calls.callTool(order), { code: 404 });
  const { structuredContent: found } = await calls.callTool({ ...order, arguments: { amount_cents: 1999, order_id: "A-1" } });
  const { structuredContent: other } = await calls.callTool({ ...order, arguments: { ...order.arguments, order_id: "A-2" } });
  assert.deepEqual([none.status, found.status, other.status], ["not_known", "verified", "verified"]);
  assert.deepEqual(named, [0, 0, 0, 0, 0, 0, 1]);
  assert.deepEqual([await w.effects("A-1"), await w.effects("A-2")], [1, 1]);
});

test("of equal calls of an operation one is sent, at once and later; one with other values is refused", async (t) => {
  const w = await place(t, { config: tools() });
  const calls = verified(await connected(t, w), { workflow: "invoices-7" });
  const made = await Promise.all([calls.callTool(order), calls.callTool(order)]);
  made.push(await calls.callTool(order));
  const [first] = made.map(({ structuredContent }) => structuredContent);
  for (const { structuredContent: { id, status } } of made) assert.deepEqual([id, status], [first.id, "verified"]);
  const { structuredContent: other } = await calls.callTool({ ...order, arguments: { ...order.arguments, amount_cents: 2500 } });
  assert.deepEqual([other.status, other.verified, await w.effects("A-1")], ["refused", false, 1]);
  assert.equal((await calls.callTool(numbered("A-2"))).structuredContent.status, "verified", "another operation");
});

test("calls that are others than in an earlier run make no more writes; other tools do not count", async (t) => {
  const w = await place(t, { config: tools({ operation: false }) });
  const client = await connected(t, w);
  const run = async (...ids) => {
    const calls = verified(client, { workflow: "invoices-7", step: "charge" });
    const results = [];
    for (const id of ids) {
      const { structuredContent } = await calls.callTool(id.startsWith("wr_") ? { name: "get_outcome", arguments: { id } } : numbered(id));
      results.push(structuredContent.verified ? structuredContent.id : structuredContent.status);
    }
    return results;
  };
  const [first, second] = await run("A-1", "A-2");
  assert.deepEqual(await run("A-0", "A-1", "A-2", "A-3"), ["refused", "refused", "refused", "refused"]);
  const none = `wr_${"0".repeat(32)}`;
  assert.deepEqual(await run("A-1", none, first, none, "A-2"), [first, "refused", first, "refused", second]);
  assert.deepEqual(await Promise.all(["A-0", "A-1", "A-2", "A-3"].map(w.effects)), [0, 1, 1, 0]);
});

test("a call keeps its number until the server knows how it ended", async () => {
  const named = [];
  const statuses = ["unknown", "refused", "in_progress", "verified", undefined, "not_applied", "verified"];
  const calls = verified({
    getServerVersion: () => ({ name: "readback", version: "1.0.0" }),
    callTool: async ({ _meta }) => {
      named.push(_meta["readback/call"]);
      const status = statuses.shift();
      return { content: [], ...(status && { structuredContent: { status } }) };
    },
  }, { workflow: "invoices-7" });
  while (statuses.length > 0) await calls.callTool(order);
  assert.deepEqual(named, [0, 0, 0, 0, 1, 1, 2]);
});

test("a call whose answer is lost is made again under its name; the next call is another one", async (t) => {
  const w = await place(t, { config: tools({ operation: false }) });
  let lost = 0;
  const client = await connected(t, w, { fetch: async (url, init) => {
    const response = await fetch(url, init);
    if (!init?.body?.includes("tools/call") || lost++ > 0) return response;
    await response.text();
    throw new TypeError("fetch failed");
  } });
  const calls = verified(client, { workflow: "invoices-7" });
  const { structuredContent: first } = await calls.callTool(order);
  const { structuredContent: second } = await calls.callTool({ ...order, arguments: { ...order.arguments, order_id: "A-2" } });
  assert.deepEqual([first.status, second.status, lost], ["verified", "verified", 3]);
  assert.notEqual(first.id, second.id);
  const { structuredContent: again } = await verified(client, { workflow: "invoices-7" }).callTool(order); // it starts again
  assert.deepEqual([again.id, again.status, lost], [first.id, "verified", 4]);
  assert.deepEqual([await w.effects("A-1"), await w.effects("A-2")], [1, 1]);
});

test("an error of the server is no lost answer, and no answer at all is a result", async (t) => {
  const w = await place(t, { config: tools() });
  let unreachable = false;
  const client = await connected(t, w, { fetch: (url, init) => (unreachable ? Promise.reject(new TypeError("fetch failed")) : fetch(url, init)) });
  const calls = verified(client, { workflow: "invoices-7" });
  await assert.rejects(calls.callTool({ name: "no_such_tool", arguments: {} }), { code: -32602 });
  unreachable = true;
  const { structuredContent } = await calls.callTool(order);
  assert.deepEqual([structuredContent.status, structuredContent.verified], ["not_known", false]);
});

test("a client without a workflow is refused before anything is sent", () => {
  const client = new Client({ name: "clerk", version: "1.0.0" });
  for (const workflow of [undefined, ""]) assert.throws(() => verified(client, { workflow }), TypeError);
});

test("a client of another server repeats nothing", async (t) => {
  const w = await place(t);
  await shop(t, 0);
  const client = new Client({ name: "clerk", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(process.env.SHOP_MCP_URL)));
  t.after(() => client.close());
  await assert.rejects(verified(client, { workflow: "invoices-7" }).callTool(order), /not connected to a readback server/);
  assert.equal(await w.effects("A-1"), 0);
});
