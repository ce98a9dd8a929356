// What goes wrong beside the writes: the server, the token, the clock, the caller.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { isDone, NotKnown, NotVerified, Readback, Refused, requireVerified, waitsForReviewer } from "readback";
import { freePort, order, world } from "./world.mjs";

const intent = { workflow: "run-7", step: "charge", ...order("A-1") };

/** A server that answers as it is made to, and counts. */
async function answers(t, handle) {
  const requests = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (text) => (body += text)).on("end", () => {
      requests.push({ method: request.method, url: request.url, headers: request.headers, body });
      handle(response, requests.length);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

const json = (response, status, body, headers = {}) => response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(body));
const verified = { id: "wr_1", status: "verified", text: "It is as requested.", for_model: "Done.", replayed: false };

test("the server is unreachable: NotKnown, and the same intent is one write later", async (t) => {
  const rb = new Readback({ url: `http://127.0.0.1:${await freePort()}`, patienceMs: 100 });
  await assert.rejects(rb.write(intent), (e) => e instanceof NotKnown && e.cause !== undefined);
  await assert.rejects(rb.get("wr_1"), NotKnown);
  await assert.rejects(rb.writes().next(), NotKnown);
  await assert.rejects(rb.outcomes(["wr_1"]).next(), NotKnown);
  const charge = rb.tool({ ...order("A-1"), key: ["order_id"], operation: (a) => `charge:${a.order_id}` });
  assert.deepEqual((({ id, verified, status }) => ({ id, verified, status }))(await charge({ order_id: "A-1", amount_cents: 1999 })), { id: "", verified: false, status: "not_known" });

  const w = await world(t);
  await w.kill();
  const patient = new Readback({ url: w.url, token: w.agent });
  const writing = patient.write(intent);
  await w.restart();
  requireVerified(await writing);
  assert.equal((await w.orders("A-1")).length, 1);
});

test("a wrong token is Refused, and nothing is sent", async (t) => {
  const w = await world(t);
  const rb = new Readback({ url: w.url, token: "rbk_wrong" });
  await assert.rejects(rb.write(intent), (e) => e instanceof Refused && e.problem.status === 401 && e.problem.type.endsWith("/unauthorized"));
  await assert.rejects(rb.outcomes(["wr_1"]).next(), Refused);
  const agent = new Readback({ url: w.url, token: w.agent });
  await assert.rejects(agent.writes().next(), (e) => e instanceof Refused && e.problem.status === 403);
  await assert.rejects(agent.write({ ...intent, destination: "nowhere" }), (e) => e instanceof Refused && e.problem.status === 422);
  assert.equal((await w.orders("A-1")).length, 0);
  assert.throws(() => new Readback({ url: w.url, token: "two\nlines" }), TypeError);
  for (const url of ["no address", "localhost:8080", "ftp://readback.example", "http://"]) assert.throws(() => new Readback({ url }), TypeError);
});

test("a review without a reviewer is an outcome, and a reviewer ends it", async (t) => {
  const w = await world(t);
  const rb = new Readback({ url: w.url, token: w.agent });
  const held = await rb.write({ ...intent, risk: "approve" });
  assert(waitsForReviewer(held) && !isDone(held));
  assert.throws(() => requireVerified(held), (e) => e instanceof NotVerified && e.outcome.id === held.id);
  assert.equal((await rb.get(held.id, { waitMs: 50 })).status, "held", "it waits no longer than it should");
  await assert.rejects(rb.decide(held.id, { decision: "approve", reason: "I am an agent" }), (e) => e instanceof Refused && e.problem.status === 403);

  const reviewer = new Readback({ url: w.url, token: w.token("reviewer") });
  const waiting = [];
  for await (const write of reviewer.writes({ status: ["held"] })) waiting.push(write.id);
  assert.deepEqual(waiting, [held.id]);
  const ending = rb.get(held.id, { waitMs: 60_000 });
  await reviewer.decide(held.id, { decision: "approve", reason: "the invoice is right" });
  requireVerified(await ending);
  assert.equal((await w.orders("A-1")).length, 1);
});

test("a decision is sent once", async (t) => {
  let answer = (response) => response.destroy();
  const { url, requests } = await answers(t, (response) => answer(response));
  const decide = () => new Readback({ url }).decide("wr_1", { decision: "retry", reason: "again" });
  await assert.rejects(decide(), NotKnown);
  answer = (response) => json(response, 503, { title: "stopping" }, { "Retry-After": "0" });
  await assert.rejects(decide(), NotKnown);
  answer = (response) => json(response, 409, { title: "busy" }, { "Retry-After": "0" });
  await assert.rejects(decide(), Refused);
  assert.equal(requests.length, 3);
});

test("a clock that is wrong or set changes nothing", async (t) => {
  const w = await world(t, { faults: ["lost-answer,op=create"] });
  const now = Date.now;
  t.after(() => (Date.now = now));
  let jumps = 0;
  Date.now = () => now() + 1e8 * jumps++;
  const rb = new Readback({ url: w.url, token: w.agent });
  requireVerified(await rb.write(intent));
  assert.equal((await w.orders("A-1")).length, 1);
  const { url, requests } = await answers(t, (response, n) => (n < 3 ? json(response, 503, {}, { "Retry-After": "0" }) : json(response, 200, verified)));
  requireVerified(await new Readback({ url, patienceMs: 60_000 }).write(intent));
  assert.equal(requests.length, 3, "the patience is not over because the clock jumps");
});

test("a cancelled wait ends at once, and the write does not", async (t) => {
  const w = await world(t, { faults: ["unreadable-read,how=500,skip=1"] });
  const rb = new Readback({ url: w.url, token: w.agent });
  const stop = new AbortController();
  const writing = rb.write(intent, { signal: stop.signal });
  const end = performance.now() + 30_000;
  while ((await w.effects()).length === 0 && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 10));
  stop.abort(new Error("enough"));
  await assert.rejects(writing, /enough/);
  await assert.rejects(rb.write(intent, { signal: AbortSignal.abort() }), { name: "AbortError" });
  await w.faults([]);
  requireVerified(await rb.write(intent));
  assert.equal((await w.effects()).length, 1);
});

test("the same request is sent until it is answered, after Retry-After", async (t) => {
  const script = [
    (r) => r.destroy(),
    (r) => json(r, 503, { title: "stopping" }, { "Retry-After": "0" }),
    (r) => json(r, 429, { title: "too many" }, { "Retry-After": "0" }),
    (r) => json(r, 409, { title: "in flight" }, { "Retry-After": "0" }),
    (r) => r.writeHead(200).end("<html>a proxy"),
    (r) => json(r, 200, { status: "ok" }),
    (r) => json(r, 202, { ...verified, status: "in_progress" }, { "Retry-After": "0" }),
    (r) => json(r, 409, { title: "begun", outcome: { ...verified, id: "wr_2" }, recorded_digest: "d", received_digest: "d" }),
  ];
  const { url, requests } = await answers(t, (response, n) => script[n - 1](response));
  assert.equal((await new Readback({ url, token: "rbk_1" }).write(intent)).id, "wr_2");
  assert.equal(requests.length, script.length);
  for (const { body, headers } of requests) {
    assert.deepEqual(JSON.parse(body), intent);
    assert.equal(headers.authorization, "Bearer rbk_1");
    assert.match(headers.prefer, /^wait=\d+$/);
  }
});

test("what will not change is not repeated", async (t) => {
  let answer;
  const { url, requests } = await answers(t, (response) => answer(response));
  for (const [status, body, detail] of [
    [422, { title: "Another write", detail: "it has other content", outcome: verified, recorded_digest: "d", received_digest: "e" }, "it has other content"],
    [409, { title: "begun", outcome: verified }, "begun"],
    [404, "not of readback", "404 Not Found"],
    [307, "elsewhere", "307 Temporary Redirect"],
  ]) {
    requests.length = 0;
    answer = (response) => json(response, status, body, { Location: "http://127.0.0.1:9/" });
    await assert.rejects(new Readback({ url }).write(intent), (e) => e instanceof Refused && e.message === detail);
    assert.equal(requests.length, 1);
  }
});

test("a later refusal says nothing about a request whose response was lost", async (t) => {
  let script;
  const { url, requests } = await answers(t, (response) => script.shift()(response));
  const rb = new Readback({ url });
  const lost = (response) => response.destroy();
  const revoked = (response) => json(response, 401, { title: "revoked" });
  script = [lost, revoked];
  await assert.rejects(rb.write(intent), (e) => e instanceof NotKnown && e.cause instanceof Refused);
  script = [lost, revoked];
  const charge = rb.tool({ ...order("A-1"), key: ["order_id"], operation: (a) => `charge:${a.order_id}` });
  assert.equal((await charge({ order_id: "A-1", amount_cents: 1999 })).status, "not_known");
  script = [(response) => json(response, 202, { ...verified, status: "in_progress" }, { "Retry-After": "0" }), revoked];
  assert.equal((await rb.write(intent)).status, "in_progress");
  script = [lost, (response) => json(response, 422, { title: "it has other content" })];
  await assert.rejects(rb.write(intent), Refused);
  script = [lost, (response) => json(response, 404, { title: "no such write" })];
  await assert.rejects(rb.get("wr_1"), Refused);
  assert.equal(requests.length, 10);
});

test("a limit without Retry-After is repeated, and is the cause when the patience ends", async (t) => {
  const { url } = await answers(t, (response) => response.writeHead(429).end("slow down"));
  await assert.rejects(new Readback({ url, patienceMs: 50 }).write(intent), (e) => e instanceof NotKnown && e.cause.status === 429);
});

test("Retry-After: 0 is no reason to ask without a pause", async (t) => {
  const { url, requests } = await answers(t, (response) => json(response, 503, {}, { "Retry-After": "0" }));
  await assert.rejects(new Readback({ url, patienceMs: 300 }).write(intent), NotKnown);
  assert(requests.length <= 5, `${requests.length} requests`);
});

test("what a proxy answers is no response of the server", async (t) => {
  let answer;
  const { url, requests } = await answers(t, (response) => answer(response));
  const rb = new Readback({ url, patienceMs: 0 });
  for (const proxy of [
    (r) => r.writeHead(200, { "Content-Type": "text/html" }).end("<html>a proxy"),
    (r) => r.writeHead(200).end(),
    (r) => r.writeHead(204).end(),
    (r) => r.writeHead(200, { "Content-Length": 100 }).write('{"id": "wr_1", "status": "verified"}', () => r.destroy()),
    (r) => json(r, 200, null),
    (r) => json(r, 200, {}),
  ]) {
    answer = proxy;
    for (const call of [() => rb.write(intent), () => rb.get("wr_1"), () => rb.writes().next(), () => rb.outcomes(["wr_1"]).next()]) await assert.rejects(call, NotKnown);
  }
  assert(requests.length >= 24);
});

test("a patience that is no number ends, and an endless one does not", async (t) => {
  const { url, requests } = await answers(t, (response, n) => (n === 1 ? json(response, 503, {}, { "Retry-After": "0" }) : json(response, 200, verified)));
  await assert.rejects(new Readback({ url, patienceMs: NaN }).write(intent), NotKnown);
  const endless = new Readback({ url, patienceMs: Infinity, timeoutMs: Infinity });
  await Promise.all(Array.from({ length: 130 }, () => endless.write(intent))); // two of them wait for their turn
  assert.equal(requests.length, 131);
});

test("a call that waits for its turn can be cancelled, and the next one gets it", async () => {
  let answer;
  const answered = new Promise((resolve) => (answer = resolve));
  let sent = 0;
  const rb = new Readback({ url: "http://127.0.0.1:9", fetch: async () => (sent++, await answered, Response.json(verified)) });
  const all = Array.from({ length: 128 }, () => rb.write(intent));
  const stop = new AbortController();
  const cancelled = rb.write(intent, { signal: stop.signal });
  all.push(rb.write(intent));
  stop.abort(new Error("enough"));
  await assert.rejects(cancelled, /enough/);
  answer();
  await Promise.all(all);
  assert.equal(sent, 129);
});

test("a browser's fetch is called as a function, and its cache is not used", async () => {
  const rb = new Readback({ url: "http://readback.example/below/?not=this", async fetch(url, { cache }) {
    assert.equal(this, undefined);
    return Response.json({ ...verified, text: `${cache} ${url}` });
  } });
  assert.equal((await rb.get("wr_1")).text, "no-store http://readback.example/below/v1/writes/wr_1");
});

test("a wait for a final outcome is one for its rechecks", async (t) => {
  const checked = { ...verified, recheck_until: "2026-11-30T00:00:00Z" };
  const { url, requests } = await answers(t, (response, n) => json(response, 200, n === 3 ? verified : checked, { "Retry-After": "0" }));
  const rb = new Readback({ url });
  assert.equal((await rb.get("wr_1", { waitMs: 60_000 })).recheck_until, checked.recheck_until);
  assert.equal((await rb.get("wr_1", { waitMs: 60_000, final: true })).recheck_until, undefined);
  assert.deepEqual(requests.map(({ headers }) => headers.prefer), ["wait=30", "wait=30, final", "wait=30, final"]);
});

test("a status of a newer server is no success and no end, and ends the wait", async (t) => {
  const newer = { ...verified, status: "archived" };
  const { url } = await answers(t, (response) => json(response, 200, newer));
  const outcome = await new Readback({ url }).write(intent);
  assert.deepEqual([isDone(outcome), waitsForReviewer(outcome)], [false, false]);
  assert.throws(() => requireVerified(outcome), NotVerified);
});

test("the wait ends with the patience, with what is known", async (t) => {
  const { url } = await answers(t, (response) => json(response, 202, { ...verified, status: "in_progress" }, { "Retry-After": "100" }));
  assert.equal((await new Readback({ url, patienceMs: 50 }).write(intent)).status, "in_progress");
  const silent = await answers(t, () => {});
  await assert.rejects(new Readback({ url: silent.url, timeoutMs: 20, patienceMs: 60 }).write(intent), NotKnown);
});

const parallel = Number(process.env.READBACK_PARALLEL ?? 500); // 10,000 take a minute
test(`${parallel} writes at once`, async (t) => {
  const w = await world(t);
  const rb = new Readback({ url: w.url, token: w.agent });
  const ids = Array.from({ length: parallel }, (_, i) => `A-${i}`);
  const outcomes = await Promise.all(ids.map((id) => rb.write({ idempotency_key: `charge:${id}`, ...order(id) })));
  for (const outcome of outcomes) requireVerified(outcome);
  const { orders, duplicates, lost } = await w.effects(`summary?${ids.slice(0, 500).map((id) => `expect=${id}`).join("&")}`);
  assert.deepEqual([orders, duplicates, lost ?? []], [parallel, 0, []]);
});
