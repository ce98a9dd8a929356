// What the tests of the wrappers share.
import assert from "node:assert/strict";
import { world } from "../test/world.mjs";
import { Readback } from "../dist/index.js";
import { listings } from "./listings.mjs";

let loaded = 0;

/** A shop and a server, which the programs of the pages find in the environment. */
export async function place(t, options) {
  const w = await world(t, options);
  Object.assign(process.env, { SHOP_URL: w.shop, READBACK_URL: w.url, READBACK_TOKEN: w.agent });
  return {
    ...w,
    loses: (orders, times = 1) => w.faults(orders.map((order) => `lost-answer,op=create,times=${times},key=${order}`)),
    effects: async (order) => (await w.effects(`effects?order_id=${order}`)).length,
    /** A reviewer approves the one write that waits. */
    approve: async (id) => new Readback({ token: w.token("reviewer") }).decide(id, { decision: "approve", reason: "as agreed" }, { patienceMs: 10_000 }),
  };
}

/** Every write of an order waits for a reviewer. */
export const held = { config: "risk:\n  - {name: orders, kind: order, class: approve}\n" };

/** One side of a program of the pages, loaded anew: it makes its client when it is loaded. */
export function program(name, side) {
  const { framework } = listings().find((l) => l.name === name);
  return import(new URL(`${framework}/build/${name}.${side}.js?${++loaded}`, import.meta.url));
}

/**
 * The plain program makes so many effects. The other one, with at most three changed lines, makes one, two where two are
 * wanted, and no other when it is started again.
 */
export async function beforeAndAfter(t, name, { effects, lost = 0, options } = {}) {
  const { changed } = listings().find((l) => l.name === name);
  const w = await place(t, options);
  if (lost) await w.loses(["A-1"], lost);
  await (await program(name, "plain")).run(["A-1"]).catch((error) => t.diagnostic(`before: ${error}`));
  assert.equal(await w.effects("A-1"), effects, "effects before");
  await w.loses(["B-1", "B-2"], Math.max(lost, 1));
  for (const start of ["first", "again"]) {
    await (await program(name, "verified")).run(["B-1", "B-2"]);
    assert.deepEqual([await w.effects("B-1"), await w.effects("B-2")], [1, 1], `effects of two orders after, started ${start}`);
  }
  const statuses = new Set();
  for await (const { status } of new Readback({ token: w.token("operator") }).writes()) statuses.add(status);
  assert.deepEqual([...statuses], ["verified"], "statuses of the writes");
  assert.ok(changed <= 3, `${changed} lines change`);
  t.diagnostic(`${name}: ${effects} effects before, 1 after; ${changed} changed lines`);
}
