// Runs the function of an engine's recipe until it ends or waits for an event:
// node drive.js ENGINE RUN ORDER [-gate]. RUN_SETTLED is the data of a webhook that arrives first.
import { readFileSync, writeFileSync } from "node:fs";

const [engine, id, order, gate = ""] = process.argv.slice(2);
const modules = { inngest: "inngest", trigger: "trigger", vercel: "workflow", durabletask: "durabletask" };
const stub = await import(`./${modules[engine]}.js`);
let recipe = `${engine}${gate}-recipe.js`;
if (stub.compiled) {
  const code = stub.compiled(readFileSync(new URL(recipe, import.meta.url), "utf8"));
  recipe = `${engine}${gate}-compiled-${process.pid}.js`;
  writeFileSync(new URL(recipe, import.meta.url), code);
}
const page = await import(`./${recipe}`);
if (process.env.RUN_SETTLED) {
  const data = JSON.parse(process.env.RUN_SETTLED);
  await (stub.settle ? stub.settle(page, data) : page.settled(data));
}
const { value, error, waits } = await stub.drive(page, id, order);
console.log(waits ? "waits" : error ? `${error.name}: ${error.message}` : `${value.status} ${value.ref}`);
process.exit(0); // what the recipe still awaits is for another process
