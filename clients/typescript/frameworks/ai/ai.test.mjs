import assert from "node:assert/strict";
import test from "node:test";
import { generateText, isStepCount, streamText, tool } from "ai";
import { convertArrayToReadableStream } from "ai/test";
import { beforeAndAfter, held, place, program } from "../wrapper.mjs";
import { model } from "./build/model.js";

test("the plain tool charges twice, the verified one once", (t) => beforeAndAfter(t, "ai", { effects: 2, lost: 1 }));

const go = (tools, model, messages) => generateText({ model, tools, messages, stopWhen: isStepCount(9) });
const begin = [{ role: "user", content: "Charge for the orders." }];
const approved = (result, yes = true) => [...begin, ...result.response.messages,
  { role: "tool", content: result.content.filter((part) => part.type === "tool-approval-request").map(({ approvalId }) => ({ type: "tool-approval-response", approvalId, approved: yes })) }];
/** What the model got from its first call. */
const result = (model) => model.doGenerateCalls[0].prompt.find(({ role }) => role === "tool").content[0].output.value;

test("a held write is an approval request, and an approval in the SDK sends nothing", async (t) => {
  const w = await place(t, held);
  const { charge_card } = await program("ai", "verified");
  const stopped = await go({ charge_card }, model(["A-1"]), begin);
  assert.equal(stopped.content.at(-1).type, "tool-approval-request");
  const resume = async () => {
    const resumed = model(["A-1"]);
    await go({ charge_card }, resumed, approved(stopped));
    return result(resumed);
  };
  const early = await resume();
  assert.deepEqual([early.status, early.verified, await w.effects("A-1")], ["held", false, 0]);
  await go({ charge_card }, model(["A-1"]), approved(stopped, false)); // the write still waits
  await w.approve(early.id);
  const done = await resume();
  assert.deepEqual([done.id, done.status, done.verified, await w.effects("A-1")], [early.id, "verified", true, 1]);
});

test("a tool's own approval comes before the write is declared", async (t) => {
  const w = await place(t);
  const { Readback, verified } = await import("./node_modules/readback/dist/ai.js");
  const { charge_card } = await program("ai", "plain");
  const rb = new Readback();
  const write = rb.tool({ destination: "orders", kind: "order", write: "create", tool: "charge_card", key: ["order_id"], operation: (o) => `charge:${o.order_id}` });
  const asks = tool(verified({ ...charge_card, needsApproval: true, toModelOutput: () => ({ type: "text", value: "charged" }) }, write));
  const stopped = await go({ charge_card: asks }, model(["A-1"]), begin);
  assert.equal(stopped.content.at(-1).type, "tool-approval-request");
  assert.equal(await w.effects("A-1"), 0);
  await go({ charge_card: asks }, model(["A-1"]), approved(stopped, false));
  assert.equal(await w.effects("A-1"), 0);
  const resumed = model(["A-1"]);
  await go({ charge_card: asks }, resumed, approved(stopped));
  assert.deepEqual([result(resumed).status, await w.effects("A-1")], ["verified", 1], "the model reads the outcome, not the tool's own text");
});

test("of equal calls at once one is sent", async (t) => {
  const w = await place(t);
  const { charge_card } = await program("ai", "verified");
  const clerk = model(["A-1"]);
  const { doGenerate } = clerk;
  let turns = 0;
  clerk.doGenerate = async (options) => {
    const one = await doGenerate(options);
    const call = (order_id, n) => ({ ...one.content[0], toolCallId: `call_${n}`, input: JSON.stringify({ order_id, amount_cents: 1999 }) });
    return ++turns === 1 ? { ...one, content: ["A-1", "A-1", "A-2"].map(call) } : one;
  };
  const { steps } = await go({ charge_card }, clerk, begin);
  const [first, again, other] = steps[0].toolResults.map(({ output }) => output);
  assert.deepEqual([first.verified, again, other.verified], [true, first, true]);
  assert.deepEqual([await w.effects("A-1"), await w.effects("A-2")], [1, 1]);
});

test("a streamed call is made although the response then breaks off, and the next one is the same write", async (t) => {
  const w = await place(t);
  const { charge_card } = await program("ai", "verified");
  const clerk = model(["A-1"]);
  const { content: [call] } = await clerk.doGenerate({ prompt: [] });
  clerk.doStream = async () => ({ stream: convertArrayToReadableStream([call, { type: "error", error: new Error("the provider is overloaded") }]) });
  const parts = [];
  for await (const { type } of streamText({ model: clerk, tools: { charge_card }, messages: begin, onError() {} }).fullStream) parts.push(type);
  assert.deepEqual([parts.includes("error"), await w.effects("A-1")], [true, 1]);
  await go({ charge_card }, model(["A-1"]), begin);
  assert.equal(await w.effects("A-1"), 1);
});

test("a second call is the first one, or is refused; a tool without an operation throws before anything is sent", async (t) => {
  const w = await place(t);
  const { Readback, verified } = await import("./node_modules/readback/dist/ai.js");
  const { charge_card } = await program("ai", "verified");
  const call = (order, tool = charge_card) => tool.execute(order, { toolCallId: "call_1", messages: [] });
  const first = await call({ order_id: "A-1", amount_cents: 1999 });
  const again = await call({ order_id: "A-1", amount_cents: 1999 });
  const other = await call({ order_id: "A-1", amount_cents: 2500 });
  assert.deepEqual([first.status, again, other.status, other.verified, await w.effects("A-1")], ["verified", first, "refused", false, 1]);
  const nameless = tool(verified({}, new Readback().tool({ destination: "orders", kind: "order", write: "create", tool: "charge_card", key: ["order_id"] })));
  await assert.rejects(call({ order_id: "A-2", amount_cents: 1999 }, nameless), TypeError);
  assert.equal(await w.effects("A-2"), 0);
});
