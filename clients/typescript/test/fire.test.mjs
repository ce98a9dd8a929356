import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Readback } from "readback";
import { world } from "./world.mjs";

const many = Number(process.env.READBACK_ORDERS ?? 600);
const job = fileURLToPath(new URL("job.mjs", import.meta.url));

test(`${many} orders, with every fault and kills of the client and the server: no duplicate, no loss, no unnoticed error`, async (t) => {
  const faults = [
    ...[["lost-answer", 0.1], ["dropped-before", 0.05], ["bad-gateway", 0.05], ["late-commit", 0.02, ",delay=400ms"], ["phantom-success", 0.03], ["throttled", 0.02, ",delay=1s"]]
      .map(([kind, p, more = ""]) => `${kind},op=create,chance=${p}${more}`),
    ...["500", "404", "garbage", "empty", "truncated", "cut"].map((how) => `unreadable-read,chance=0.02,how=${how}`),
  ];
  const w = await world(t, { faults });
  const reported = new Map();
  const kills = { client: [50, 200, 350, 500], server: [120, 280, 430] }; // by the number of finished orders
  const due = (list) => list.length > 0 && reported.size >= (list[0] * many) / 600 && list.shift();
  let restart = Promise.resolve();
  for (let run = 1, over = false; !over; run++) {
    const client = spawn(process.execPath, [job, String(many), String(run)], { env: { ...process.env, READBACK_URL: w.url, READBACK_TOKEN: w.agent }, stdio: ["ignore", "pipe", "inherit"] });
    const end = new Promise((resolve) => client.once("exit", (code, signal) => resolve([code, signal])));
    for await (const line of createInterface(client.stdout)) {
      const { order, id, status } = JSON.parse(line);
      const before = reported.get(order);
      assert(!before || before.id === id, `order ${order} is the writes ${before?.id} and ${id}`);
      reported.set(order, { id, status });
      if (due(kills.server)) restart = restart.then(w.restart);
      if (due(kills.client)) client.kill("SIGKILL");
    }
    const [code, signal] = await end;
    assert(code === 0 || signal === "SIGKILL", `the job ended with ${code ?? signal}`);
    over = code === 0;
  }
  await restart;
  assert.deepEqual(kills, { client: [], server: [] });
  assert.equal(reported.size, many);

  // What has not ended ends when the destination is well again.
  await w.faults([]);
  const rb = new Readback({ url: w.url, token: w.agent });
  const open = [...reported.values()].filter((r) => r.status !== "verified");
  for (const one of open) one.status = (await rb.get(one.id, { waitMs: 20_000 })).status;

  const { orders, duplicates } = await w.effects(`summary?expect=A-0`);
  let wrong = 0, made = 0, waiting = 0;
  for (const [id, { status }] of reported) {
    const there = (await w.orders(id)).length;
    if (status === "verified") made++;
    else if (status === "review") waiting++;
    if (there > 1 || (status === "verified" && there !== 1) || (status === "not_applied" && there !== 0)) wrong++;
  }
  t.diagnostic(`${made} verified, ${waiting} in review, ${many - made - waiting} others; ${orders} orders at the destination`);
  assert.deepEqual({ duplicates, wrong, lost: many - made - waiting }, { duplicates: 0, wrong: 0, lost: 0 });
  assert.equal(waiting, 0, "each of these faults ends without a reviewer");
});
