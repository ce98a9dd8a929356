// The programs of docs/guide/frameworks.md and threads.md: a listing is a diff of the plain program and the one
// with readback.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const pages = ["frameworks.md", "threads.md"].map((page) => fileURLToPath(new URL(`../../../docs/guide/${page}`, import.meta.url)));

export function listings() {
  return pages.flatMap((page) =>
    [...readFileSync(page, "utf8").matchAll(/<!-- run: (\S+), with (\S+) -->\n```diff\n(.*?)```/gs)].map(([, name, framework, diff]) => {
      const lines = diff.split("\n");
      const side = (mark) => lines.filter((line) => !line.startsWith(mark)).map((line) => line.slice(1)).join("\n");
      return { name, framework, plain: side("+"), verified: side("-"), changed: lines.filter((line) => line.startsWith("+")).length };
    }));
}
