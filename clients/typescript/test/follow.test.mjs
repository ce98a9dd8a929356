import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { isDone, Readback, Refused, requireVerified } from "readback";
import { BadSignature, verifyWebhook } from "readback/webhook";
import { Webhook } from "standardwebhooks";
import { order, world } from "./world.mjs";

test("outcomes come as the writes end, over restarts of the server", async (t) => {
  const w = await world(t);
  const rb = new Readback({ url: w.url, token: w.agent });
  const reviewer = new Readback({ url: w.url, token: w.token("reviewer") });
  const done = await rb.write({ workflow: "run-7", step: "charge-0", ...order("A-0") });
  const held = [];
  for (const n of [1, 2]) held.push(await rb.write({ workflow: "run-7", step: `charge-${n}`, risk: "approve", ...order(`A-${n}`) }));

  const ended = rb.outcomes([done.id, ...held.map((o) => o.id)]);
  assert.equal((await ended.next()).value.id, done.id, "it had ended before");
  let next = ended.next();
  await reviewer.decide(held[1].id, { decision: "approve", reason: "right" });
  assert.equal(requireVerified((await next).value).id, held[1].id);
  next = ended.next();
  await w.restart();
  await reviewer.decide(held[0].id, { decision: "deny", reason: "wrong" });
  assert.deepEqual((({ id, status }) => [id, status])((await next).value), [held[0].id, "denied"]);
  assert.equal((await ended.next()).done, true);
  await assert.rejects(rb.outcomes(["wr_00000000000000000000000000000000"]).next(), Refused);
});

test("a stream is continued after its last event, and read anew where events were missed", async (t) => {
  const outcome = (id, status) => ({ id, status, text: "", for_model: "", replayed: true });
  const event = (id, name, data) => `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const seen = [];
  const streams = [
    [": readback\nretry: 2000\n\n", event("c1", "outcome", { outcome: outcome("wr_a", "review") }), event("c2", "outcome", { outcome: outcome("wr_other", "verified") }).slice(0, 30)],
    [event("c2", "here", {}), event("c3", "missed", { title: "too far" })],
    [event("c9", "outcome", { outcome: outcome("wr_b", "denied") })],
  ];
  const server = createServer((request, response) => {
    const { "last-event-id": last, prefer } = request.headers;
    seen.push([request.url.split("?")[0], last && `after ${last}`, prefer].filter(Boolean).join(" "));
    if (request.url.startsWith("/v1/writes/batch")) {
      const ids = new URL(request.url, "http://x").searchParams.getAll("id");
      const now = { wr_a: streams.length === 0 ? "verified" : "in_progress", wr_b: "review", wr_c: "archived" };
      response.writeHead(200, { "Content-Type": "application/json" });
      return response.end(JSON.stringify({ results: ids.map((id) => ({ status: 200, outcome: outcome(id, now[id]) })) }));
    }
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    for (const chunk of streams.shift()) response.write(chunk);
    if (streams.length > 0) response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  const rb = new Readback({ url: `http://127.0.0.1:${server.address().port}` });
  const got = [];
  for await (const o of rb.outcomes(["wr_a", "wr_b", "wr_c"])) got.push(`${o.id} ${o.status}`);
  assert.deepEqual(got, ["wr_c archived", "wr_a verified", "wr_b denied"]); // only a newer client knows what archived means
  assert.deepEqual(seen, ["/v1/events", "/v1/writes/batch", "/v1/events after c1", "/v1/events", "/v1/writes/batch"]);
});

test("outcomes can be cancelled", async (t) => {
  const w = await world(t);
  const rb = new Readback({ url: w.url, token: w.agent });
  const held = await rb.write({ workflow: "run-7", step: "charge", risk: "approve", ...order("A-1") });
  const stop = new AbortController();
  const next = rb.outcomes([held.id], { signal: stop.signal }).next();
  setImmediate(() => stop.abort(new Error("enough")));
  await assert.rejects(next, /enough/);
});

test("writes are listed over pages", async (t) => {
  const w = await world(t);
  const rb = new Readback({ url: w.url, token: w.agent });
  const ids = [];
  for (let i = 0; i < 5; i++) ids.unshift((await rb.write({ workflow: "run-7", step: `charge-${i}`, ...order(`A-${i}`) })).id);
  const reviewer = new Readback({ url: w.url, token: w.token("reviewer") });
  const all = async (filter) => {
    const found = [];
    for await (const write of reviewer.writes(filter)) found.push(write.id);
    return found;
  };
  assert.deepEqual(await all({ limit: 2 }), ids);
  const found = [];
  for await (const { id } of reviewer.writes({ limit: 2 })) {
    found.push(id);
    await rb.write({ workflow: "run-8", step: `charge-${found.length}`, ...order(`B-${found.length}`) });
  }
  assert.deepEqual(found, ids, "what is written meanwhile moves no page");
  assert.deepEqual(await all({ q: "A-3", status: ["verified", "review"] }), [ids[1]]);
});

test("a tool gives a model a result, and makes one effect of two calls", async (t) => {
  const w = await world(t, { faults: ["lost-answer,op=create"] });
  const rb = new Readback({ url: w.url, token: w.agent });
  const charge = rb.tool({ destination: "orders", kind: "order", write: "create", tool: "charge_card", key: ["order_id"], operation: (a) => `charge:${a.order_id}` });
  const args = { order_id: "A-1", amount_cents: 1999, currency: "EUR" };
  const first = await charge(args, { workflow: "run-7" });
  assert.deepEqual(Object.keys(first), ["id", "verified", "status", "what_to_do"]);
  assert.deepEqual([first.verified, first.status], [true, "verified"]);
  assert.equal((await charge({ currency: "EUR", ...args }, { workflow: "run-8" })).id, first.id);
  const other = await charge({ ...args, amount_cents: 2999 }, { workflow: "run-9" });
  assert.deepEqual([other.verified, other.status, other.id], [false, "refused", first.id]);
  assert.match(other.what_to_do, /Do not do it in another way/);
  assert.equal((await charge({ amount_cents: 1 }, { workflow: "run-7" })).status, "refused");
  assert.equal((await charge({ ...args, order_id: "A-2" }, { workflow: "run-7", signal: AbortSignal.abort() })).status, "not_known");
  assert.equal((await w.effects()).length, 1);

  // Without an operation the program names the calls: two wanted charges are two effects.
  const plain = rb.tool({ destination: "orders", kind: "order", write: "create", tool: "charge", key: ["order_id"] });
  const run = async () => {
    const step = rb.workflow("run-7").step("both");
    return [await plain({ ...args, order_id: "A-3" }, step), await plain({ ...args, order_id: "A-4" }, step)].map((r) => r.id);
  };
  const ids = await run();
  assert.deepEqual(await run(), ids);
  assert.equal((await w.effects()).length, 3);
});

test("a webhook is verified with any of its secrets, and a changed one is not", () => {
  const [old, now] = ["a", "b"].map((c) => `whsec_${Buffer.from(c.repeat(32)).toString("base64")}`);
  const body = JSON.stringify({ type: "write.settled", timestamp: "2026-03-01T12:00:00Z", data: { write: "wr_1", status: "verified" } });
  const signed = (at) => ({ "Webhook-Id": "m-1", "webhook-timestamp": String(Math.floor(at / 1000)), "webhook-signature": new Webhook(old).sign("m-1", new Date(at), body) });
  const headers = signed(Date.now());
  assert.equal(verifyWebhook(body, headers, [now, old]).data.write, "wr_1");
  assert.equal(verifyWebhook(new TextEncoder().encode(body), new Headers(headers), old).type, "write.settled");
  for (const [text, of, secret] of [[body.replace("wr_1", "wr_2"), headers, old], [body, headers, now], [body, headers, []], [body, signed(Date.now() - 3_600_000), old], [body, {}, old]]) {
    assert.throws(() => verifyWebhook(text, of, secret), BadSignature);
  }
});

test("every end is one", () => {
  const ends = ["verified", "not_applied", "compensated", "accepted", "abandoned", "denied", "expired", "reported"];
  for (const status of [...ends, "in_progress", "unverified", "entrusted", "held", "review"]) assert.equal(isDone({ status }), ends.includes(status), status);
});
