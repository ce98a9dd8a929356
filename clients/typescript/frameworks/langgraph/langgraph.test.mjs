import assert from "node:assert/strict";
import test from "node:test";
import { Command } from "@langchain/langgraph";
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
  const done = await graph.invoke(new Command({ resume: true }), thread);
  const result = JSON.parse(done.messages.find(({ type }) => type === "tool").content);
  assert.deepEqual([result.id, result.status, result.verified], [value.write, "verified", true]);
  assert.equal(await w.effects("A-1"), 1);
});
