// The public reports of docs/guide/threads.md: what the program does before, and with readback.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import test from "node:test";
import { frameworks, listings, threads as page, withPython } from "../frameworks/listings.mjs";
import { shop, tools } from "../frameworks/mcp/shop.mjs";
import { beforeAndAfter } from "../frameworks/wrapper.mjs";

const threads = {
  "openai-agents-python-4254": { effects: 2, lost: 1 },
  "crewAI-5802": { effects: 2 },
  "langgraph-6208": { effects: 3 },
  "agent-framework-3938": { effects: 2 },
  "trigger.dev-4627": { effects: 2 },
  "vercel-workflow-3553": { effects: 2 },
  "vercel-workflow-2675": { effects: 2 },
  "google_workspace_mcp-997": { effects: 4, lost: 3, options: { config: tools() } },
};

for (const [name, thread] of Object.entries(threads)) {
  test(name, async (t) => {
    if (name === "google_workspace_mcp-997") await shop(t, 3);
    await beforeAndAfter(t, name, thread);
  });
}

test("each program of the pages is tested", () => {
  const wrappers = ["ai", "langgraph", "mastra", "mcp", "openai-agents"];
  assert.deepEqual(listings().map(({ name }) => name).sort(), [...Object.keys(threads), ...wrappers].sort());
});

test("the page has the programs of clients/python/threads; UPDATE=1 renders them", () => {
  const text = readFileSync(page, "utf8");
  if (process.env.UPDATE) writeFileSync(page, withPython(text));
  else assert.equal(text, withPython(text));
});

test("the page of the frameworks names the tested versions", () => {
  const text = readFileSync(frameworks, "utf8");
  for (const framework of new Set(listings().map(({ framework }) => framework).filter((name) => name !== "stand-ins"))) {
    const { dependencies } = JSON.parse(readFileSync(new URL(`../frameworks/${framework}/package.json`, import.meta.url), "utf8"));
    const row = text.split("\n").find((line) => line.startsWith(`| \`readback/${framework}\` |`));
    assert.ok(Object.entries(dependencies).some(([name, version]) => row.endsWith(` \`${name}\` ${version} |`)), row);
  }
});
