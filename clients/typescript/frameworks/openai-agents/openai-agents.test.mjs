import assert from "node:assert/strict";
import test from "node:test";
import { Agent, Runner, RunState, tool } from "@openai/agents";
import { z } from "zod";
import { beforeAndAfter, held, place, program } from "../wrapper.mjs";
import { model } from "./build/model.js";

test("the plain tool charges twice, the verified one once", (t) => beforeAndAfter(t, "openai-agents", { effects: 2, lost: 1 }));

const clerk = (tool, orders) => new Agent({ name: "clerk", model: model(orders), tools: [tool] });
const results = (run) => run.history.filter(({ type }) => type === "function_call_result").map(({ output }) => JSON.parse(output.text));

test("a held write is an interruption, and an approval in the SDK sends nothing", async (t) => {
  const w = await place(t, held);
  const { charge_card } = await program("openai-agents", "verified");
  const agent = clerk(charge_card, ["A-1"]);
  const stopped = await new Runner().run(agent, "Charge for the orders.");
  assert.equal(stopped.interruptions.length, 1);
  const resume = async () => { // in another process
    const state = await RunState.fromString(agent, stopped.state.toString());
    for (const item of state.getInterruptions()) state.approve(item);
    const [result] = results(await new Runner().run(agent, state));
    return result;
  };
  const early = await resume();
  assert.deepEqual([early.status, early.verified, await w.effects("A-1")], ["held", false, 0]);
  await w.approve(early.id);
  const done = await resume();
  assert.deepEqual([done.id, done.status, done.verified, await w.effects("A-1")], [early.id, "verified", true, 1]);
});

test("a guardrail of the tool sees a call before its write is declared", async (t) => {
  const w = await place(t);
  const { Readback, verified } = await import("./node_modules/readback/dist/openai-agents.js");
  const write = new Readback().tool({ destination: "orders", kind: "order", write: "create", tool: "charge_card", key: ["order_id"], operation: (o) => `charge:${o.order_id}` });
  const { charge_card } = await program("openai-agents", "plain");
  const guarded = tool(verified({ name: "charge_card", description: "Charges.", parameters: charge_card.parameters, strict: true, execute: () => "",
    inputGuardrails: [{ name: "no", run: async () => ({ behavior: { type: "rejectContent", message: "what_to_do: not this one" } }) }] }, write));
  await new Runner().run(clerk(guarded, ["A-1"]), "Charge for the orders.");
  assert.equal(await w.effects("A-1"), 0);
});

test("of equal calls at once one is sent", async (t) => {
  const w = await place(t);
  const { charge_card } = await program("openai-agents", "verified");
  const agent = clerk(charge_card, ["A-1", "A-1", "A-2"]);
  const { getResponse } = agent.model;
  let turns = 0;
  agent.model.getResponse = async (request) => {
    const one = await getResponse(request);
    const call = (order_id, n) => ({ ...one.output[0], callId: `call_${n}`, arguments: JSON.stringify({ order_id, amount_cents: 1999 }) });
    return ++turns === 1 ? { ...one, output: ["A-1", "A-1", "A-2"].map(call) } : one;
  };
  const [first, again, other] = results(await new Runner().run(agent, "Charge for the orders."));
  assert.deepEqual([first.verified, again, other.verified], [true, first, true]);
  assert.deepEqual([await w.effects("A-1"), await w.effects("A-2")], [1, 1]);
});

test("arguments without the tool's schema make no write", async (t) => {
  const w = await place(t);
  const { Readback, verified } = await import("./node_modules/readback/dist/openai-agents.js");
  const write = new Readback().tool({ destination: "orders", kind: "order", write: "create", tool: "charge_card", key: ["order_id"], operation: (o) => `charge:${o.order_id}` });
  const charges = async (parameters) => {
    const charge = tool(verified({ name: "charge_card", description: "Charges.", parameters, execute: () => "" }, write));
    await new Runner().run(clerk(charge, ["A-1"]), "Charge for the orders.");
    return w.effects("A-1");
  };
  const order = { order_id: z.string(), amount_cents: z.number().int() };
  assert.equal(await charges(z.object({ ...order, amount_cents: z.number().max(1000) })), 0);
  assert.equal(await charges(z.object(order)), 1);
});

test("the context of the run names the workflow", async (t) => {
  const w = await place(t);
  const { Readback, verified } = await import("./node_modules/readback/dist/openai-agents.js");
  const rb = new Readback({ token: w.token("operator") });
  const write = rb.tool({ destination: "orders", kind: "order", write: "create", tool: "charge_card", key: ["order_id"], operation: (o) => `charge:${o.order_id}` });
  const { charge_card } = await program("openai-agents", "plain");
  const named = tool(verified({ name: "charge_card", description: "Charges.", parameters: charge_card.parameters, strict: true, execute: () => "" }, write, ({ run }) => ({ workflow: run })));
  await new Runner().run(clerk(named, ["A-1"]), "Charge for the orders.", { context: { run: "invoices-7" } });
  for await (const { workflow, step } of rb.writes()) assert.deepEqual([workflow, step], ["invoices-7", "charge:A-1"]);
  assert.equal(await w.effects("A-1"), 1);
});
