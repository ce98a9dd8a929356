import assert from "node:assert/strict";
import test from "node:test";
import { Agent } from "@mastra/core/agent";
import { Mastra } from "@mastra/core/mastra";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { createStep, createWorkflow } from "@mastra/core/workflows";
import { z } from "zod";
import { beforeAndAfter, held, place, program } from "../wrapper.mjs";
import { model } from "./build/model.js";

test("the plain tool charges twice, the verified one once", (t) => beforeAndAfter(t, "mastra", { effects: 2, lost: 1 }));

test("a held write suspends the agent, and a resume sends nothing before the reviewer's decision", async (t) => {
  const w = await place(t, held);
  const agent = (await program("mastra", "verified")).clerk(["A-1"]);
  const stopped = await agent.generate("Charge for the orders.", { maxSteps: 9, runId: "invoices-7" });
  assert.equal(stopped.finishReason, "suspended");
  const { write } = stopped.suspendPayload.suspendPayload;
  const early = await agent.resumeGenerate({ approved: true }, { runId: "invoices-7" });
  assert.equal(early.finishReason, "suspended");
  assert.equal(await w.effects("A-1"), 0);
  await w.approve(write);
  const done = await agent.resumeGenerate({}, { runId: "invoices-7" });
  assert.equal(done.text, "done");
  assert.equal(await w.effects("A-1"), 1);
});

test("of equal calls at once one is sent", async (t) => {
  const w = await place(t);
  const tools = await (await program("mastra", "verified")).clerk([]).listTools();
  const clerk = model(["A-1", "A-1", "A-2"]);
  const results = [];
  let turns = 0;
  const { doGenerate } = clerk;
  clerk.doGenerate = async (options) => {
    const one = await doGenerate(options);
    const call = (order_id, n) => ({ ...one.content[0], toolCallId: `call_${n}`, input: JSON.stringify({ order_id, amount_cents: 1999 }) });
    results.push(...options.prompt.filter(({ role }) => role === "tool").flatMap(({ content }) => content.map(({ output }) => output.value)));
    return ++turns === 1 ? { ...one, content: ["A-1", "A-1", "A-2"].map(call) } : one;
  };
  await new Agent({ id: "clerk", name: "clerk", instructions: "Charge for orders.", model: clerk, tools }).generate("Charge for the orders.", { maxSteps: 9 });
  const [first, again, other] = results;
  assert.deepEqual([first.verified, again, other.verified], [true, first, true]);
  assert.deepEqual([await w.effects("A-1"), await w.effects("A-2")], [1, 1]);
});

test("a held write suspends a workflow; a retry and a resume are the same write", async (t) => {
  const w = await place(t, held);
  const { Readback, verified } = await import("./node_modules/readback/dist/mastra.js");
  const write = new Readback().tool({ destination: "orders", kind: "order", write: "create", tool: "charge_card", key: ["order_id"], operation: (o) => `charge:${o.order_id}` });
  const inputSchema = z.object({ order_id: z.string(), amount_cents: z.number() });
  const charge = createTool(verified({ id: "charge", description: "Charges.", inputSchema, outputSchema: z.string(), execute: async () => "" }, write));
  const charges = createWorkflow({ id: "charges", inputSchema, outputSchema: z.any() }).then(createStep(charge)).commit();
  const run = await new Mastra({ workflows: { charges }, storage: new InMemoryStore(), logger: false }).getWorkflow("charges").createRun({ runId: "invoices-7" });
  const stopped = await run.start({ inputData: { order_id: "A-1", amount_cents: 1999 } });
  assert.equal(stopped.status, "suspended");
  const id = stopped.steps.charge.suspendPayload.write;
  await w.approve(id);
  const done = await run.resume({ step: "charge", resumeData: {} });
  assert.deepEqual([done.status, done.result.id, done.result.verified], ["success", id, true]);
  assert.equal(await w.effects("A-1"), 1);
});
