import assert from "node:assert/strict";
import { test } from "node:test";
import { isVerified, NotKnown, Readback, Refused, requireVerified } from "readback";
import { order, world } from "./world.mjs";

test("a write whose response is lost is one effect, and a repeat is the same write", async (t) => {
  const w = await world(t, { faults: ["lost-answer,op=create"] });
  const rb = new Readback({ url: w.url, token: w.agent });
  const intent = { workflow: "run-7", step: "charge", ...order("A-1") };
  const first = await rb.write(intent);
  const again = await rb.write(intent);
  assert(isVerified(first));
  assert.equal(requireVerified(again).ref, first.ref);
  assert.deepEqual([again.id, again.replayed], [first.id, true]);
  assert.equal((await w.orders("A-1")).length, 1);
  await assert.rejects(rb.write({ ...intent, ...order("A-1", 2999) }), (e) => e instanceof Refused && e.problem.id === first.id);
  assert.equal((await w.orders("A-1")).length, 1);
});

test("a write without a name is refused before anything is sent", async () => {
  const rb = new Readback({ url: "http://127.0.0.1:9", fetch: () => assert.fail("something was sent") });
  for (const name of [{}, { step: "charge" }, { step: "charge", idempotency_key: "charge:A-1" }]) {
    await assert.rejects(rb.write({ ...name, ...order("A-1") }), TypeError);
  }
  const charge = rb.tool({ ...order("A-1"), key: ["order_id"] });
  for (const run of [undefined, { workflow: "run-7" }, { step: "charge" }]) await assert.rejects(charge({ order_id: "A-1" }, run), TypeError);
});

test("two writes of one operation are one, whatever names them", async (t) => {
  const w = await world(t);
  const rb = new Readback({ url: w.url, token: w.agent });
  const key = { idempotency_key: "charge:A-1" };
  const outcomes = [
    await rb.write({ ...key, ...order("A-1") }),
    await rb.write({ ...key, ...order("A-1") }),
    await rb.write({ workflow: "run-7", step: "charge", ...key, ...order("A-1") }),
    await rb.write({ workflow: "run-8", step: "charge", ...key, ...order("A-1") }),
  ];
  assert.equal(new Set(outcomes.map((o) => requireVerified(o).id)).size, 1);
  await assert.rejects(rb.write({ workflow: "run-9", step: "charge", ...key, ...order("A-1", 2999) }), Refused);
  assert.equal((await w.orders("A-1")).length, 1);
});

test("a step counts its writes, and repeats one that has not ended", async (t) => {
  const w = await world(t);
  const rb = new Readback({ url: w.url, token: w.agent });
  const step = () => rb.workflow("run-7").step("charge");
  const twice = async () => {
    const s = step();
    return Promise.all([s.write(order("A-1")), s.write(order("A-2"))]);
  };
  const [first, other] = await Promise.all([twice(), twice()]); // a job that runs twice at once
  for (const same of [other, await twice()]) assert.deepEqual(same.map((o) => o.id), first.map((o) => o.id));
  assert.equal(new Set(first.map((o) => o.id)).size, 2);
  assert.equal((await w.effects()).length, 2);

  const held = rb.workflow("run-7").step("refund");
  const wanted = { ...order("A-3"), risk: "approve" };
  const one = await held.write(wanted);
  assert.equal(one.status, "held");
  assert.equal((await held.write(wanted)).id, one.id, "it waits for a reviewer: it is the same write");
  assert.notEqual((await held.write({ ...order("A-4"), risk: "approve" })).id, one.id);
});

test("a step counts each tool, and repeats as many equal writes as have not ended", async () => {
  const named = [];
  let unreachable = true;
  const reversed = (intent) => Object.fromEntries(Object.entries(intent).reverse());
  const outcome = { id: "wr_1", status: "verified", text: "", for_model: "", replayed: false };
  const rb = new Readback({
    url: "http://127.0.0.1:9", patienceMs: 0, fetch: async (_, { body }) => {
      const { tool, call } = JSON.parse(body);
      named.push(`${tool} ${call}`);
      if (unreachable) throw new TypeError("the server is unreachable");
      return Response.json(outcome);
    },
  });
  const step = rb.workflow("run-7").step("charge");
  const both = () => Promise.allSettled([step.write(order("A-1")), step.write(order("A-1"))]);
  assert.deepEqual((await both()).map((r) => r.reason instanceof NotKnown), [true, true]);
  unreachable = false;
  await both();
  await step.write({ ...order("A-1"), tool: "send_receipt" });
  unreachable = true;
  await assert.rejects(step.write(order("A-1")), NotKnown);
  unreachable = false;
  const { key, expect, ...rest } = order("A-1");
  await step.write(reversed({ ...rest, key, expect: reversed(expect) })); // a model gives its arguments in any order
  assert.deepEqual(named, ["charge_card 0", "charge_card 1", "charge_card 0", "charge_card 1", "send_receipt 0", "charge_card 2", "charge_card 2"]);
});

test("a cancelled write keeps its number, before it returns too; an ended one does not", async () => {
  const named = [];
  const rb = new Readback({
    url: "http://127.0.0.1:9", fetch: async (_, { body, signal }) => {
      if (named.push(JSON.parse(body).call) === 1) await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      return Response.json({ id: "wr_1", status: "verified", text: "", for_model: "", replayed: false });
    },
  });
  const step = rb.workflow("run-7").step("charge");
  const stop = new AbortController();
  const cancelled = step.write(order("A-1"), { signal: stop.signal });
  stop.abort();
  await step.write(order("A-1"));
  await assert.rejects(cancelled, { name: "AbortError" });
  await step.write(order("A-1"), { signal: new AbortController().signal });
  assert.deepEqual(named, [0, 0, 1]);
});

test("a step whose calls are others than in an earlier run makes no more writes", async () => {
  const writes = new Map();
  const rb = new Readback({
    url: "http://127.0.0.1:9", fetch: async (_, { body }) => {
      const { call, key } = JSON.parse(body);
      if (!writes.has(call)) writes.set(call, key.order_id);
      if (writes.get(call) !== key.order_id) return Response.json({ type: "https://readback.invalid/problems/digest-mismatch", title: "other content" }, { status: 422 });
      return Response.json({ id: "wr_1", status: "verified", text: "", for_model: "", replayed: false });
    },
  });
  const job = async (...ids) => {
    const step = rb.workflow("run-7").step("charge");
    let refused = 0;
    for (const id of ids) await step.write(order(id)).catch((error) => (refused += error instanceof Refused)); // and the next one is tried
    return refused;
  };
  assert.equal(await job("A-1", "A-2"), 0);
  assert.equal(await job("A-0", "A-1", "A-2"), 3);
  assert.equal(await job("A-1", "A-2", "A-3"), 0);
  assert.deepEqual([...writes.values()], ["A-1", "A-2", "A-3"]);
});

test("a number that JSON does not have is refused before anything is sent", async () => {
  const rb = new Readback({ url: "http://127.0.0.1:9", fetch: () => assert.fail("something was sent") });
  await assert.rejects(rb.write({ idempotency_key: "charge:A-1", ...order("A-1", Number("19,99")) }), TypeError);
  await assert.rejects(rb.workflow("run-7").step("charge").write(order("A-1", 1 / 0)), TypeError);
});
