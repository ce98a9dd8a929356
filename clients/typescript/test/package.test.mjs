// What is published: types, size, and the block of the README.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { world } from "./world.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const run = (args, options) => promisify(execFile)(process.execPath, args, { cwd: root, ...options });

test("programs are checked strictly", async () => {
  await run(["node_modules/typescript/bin/tsc", "--strict", "--noEmit", "--noUncheckedIndexedAccess", "--erasableSyntaxOnly",
    "--module", "nodenext", "--target", "es2022", "--types", "node", "test/types.ts"]).catch((e) => assert.fail(e.stdout));
});

test("the first write of the README is verified, and a repeat is the same write", async (t) => {
  const [, block] = /```ts\n(.*?)```/s.exec(readFileSync(`${root}/README.md`, "utf8"));
  const w = await world(t, { faults: ["lost-answer,op=create"] });
  const env = { ...process.env, READBACK_URL: w.url, READBACK_TOKEN: w.agent };
  const printed = [];
  for (const _ of [1, 2]) printed.push((await run(["--input-type=module", "-e", block], { env })).stdout);
  assert.match(printed[0], /^ord_\d+ The order/);
  assert.equal((await w.orders("R-7721")).length, 1);
  assert.equal(printed[1].split(" ")[0], printed[0].split(" ")[0]);
});

test("the core is small, needs no package, and knows no address", () => {
  const text = ["index", "client", "outcome", "step", "tool"].map((name) => readFileSync(`${root}/dist/${name}.js`, "utf8")).join("");
  assert(gzipSync(text).length < 8192, `${gzipSync(text).length} bytes`);
  assert.equal(JSON.parse(readFileSync(`${root}/package.json`, "utf8")).dependencies, undefined);
  for (const name of readdirSync(`${root}/dist`).filter((n) => n.endsWith(".js"))) assert.doesNotMatch(readFileSync(`${root}/dist/${name}`, "utf8"), /https?:\/\//, name);
});

test("it is installed beside any version of a framework", () => {
  const imported = new Set();
  for (const name of readdirSync(`${root}/dist`)) {
    for (const [, from] of readFileSync(`${root}/dist/${name}`, "utf8").matchAll(/from "([^."][^"]*)"/g)) imported.add(from);
  }
  // npm refuses an installation beside another version of a peer, an optional one too.
  const { peerDependencies, peerDependenciesMeta } = JSON.parse(readFileSync(`${root}/package.json`, "utf8"));
  assert.deepEqual(peerDependencies, Object.fromEntries([...imported].sort().map((name) => [name, "*"])));
  for (const name of imported) assert.equal(peerDependenciesMeta[name].optional, true);
});
