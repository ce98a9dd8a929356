import assert from "node:assert/strict";
import test from "node:test";
import { AIMessage } from "@langchain/core/messages";
import { Command, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAndAfter, held, place, program } from "../wrapper.mjs";

test("the plain tool charges twice, the verified one once", (t) => beforeAndAfter(t, "langgraph", { effects: 2, lost: 1 }));

test("a held write is an interrupt, and a resume sends nothing before the reviewer's decision", async (t) => {
  const w = await place(t, held);
  const graph = (await program("langgraph", "verified")).graph(["A-1"]);
  const thread = { configurable: { thread_id: "invoices-7" } };
  const stopped = await graph.invoke({ messages: [{ role: "user", content: "Charge for the orders." }] }, thread);
  const [{ value }] = stopped.__interrupt__;
  assert.match(value.write, /^wr_/);
  const early = await graph.invoke(new Command({ resume: "approve" }), thread);
  assert.equal(early.__interrupt__[0].value.write, value.write);
  assert.equal(await w.effects("A-1"), 0);
  await w.approve(value.write);
  const done = await graph.invoke(null, thread);
  const result = JSON.parse(done.messages.find(({ type }) => type === "tool").content);
  assert.deepEqual([result.id, result.status, result.verified], [value.write, "verified", true]);
  assert.equal(await w.effects("A-1"), 1);
});

test("a resume without a value answers no other interrupt of the node", async (t) => {
  const w = await place(t, held);
  const { charge_card } = await program("langgraph", "verified");
  const answers = [];
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("clerk", async (_, config) => {
      await charge_card.invoke({ order_id: "A-1", amount_cents: 1999 }, config);
      answers.push(interrupt("Delete the customer?"));
    })
    .addEdge(START, "clerk").compile({ checkpointer: new MemorySaver() });
  const thread = { configurable: { thread_id: "invoices-7" } };
  const stopped = await graph.invoke({ messages: [] }, thread);
  await w.approve(stopped.__interrupt__[0].value.write);
  assert.equal((await graph.invoke(null, thread)).__interrupt__[0].value, "Delete the customer?");
  await graph.invoke(new Command({ resume: "no" }), thread);
  assert.deepEqual(answers, ["no"]);
  assert.equal(await w.effects("A-1"), 1);
});

test("two held writes of one node are approved one after another", async (t) => {
  const w = await place(t, held);
  const { charge_card } = await program("langgraph", "verified");
  const tool_calls = ["A-1", "A-2"].map((order_id) => ({ name: "charge_card", id: `call_${order_id}`, args: { order_id, amount_cents: 1999 }, type: "tool_call" }));
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("clerk", () => ({ messages: [new AIMessage({ content: "", tool_calls })] }))
    .addNode("tools", new ToolNode([charge_card]))
    .addEdge(START, "clerk").addEdge("clerk", "tools").compile({ checkpointer: new MemorySaver() });
  const thread = { configurable: { thread_id: "invoices-7" } };
  let state = await graph.invoke({ messages: [] }, thread);
  const approved = new Set();
  for (let resumed = 0; state.__interrupt__; resumed++) {
    assert.ok(resumed < 6, "it is interrupted again and again");
    const { write } = state.__interrupt__[0].value;
    if (!approved.has(write)) await w.approve(write);
    approved.add(write);
    state = await graph.invoke(new Command({ resume: true }), thread);
  }
  assert.equal(approved.size, 2);
  assert.deepEqual(state.messages.filter(({ type }) => type === "tool").map(({ content }) => JSON.parse(content).status), ["verified", "verified"]);
  assert.deepEqual([await w.effects("A-1"), await w.effects("A-2")], [1, 1]);
});
