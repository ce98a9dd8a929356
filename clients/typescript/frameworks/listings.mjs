// The programs of docs/guide/frameworks.md and threads.md: a listing is a diff of the plain program and the one
// with readback.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
export const threads = at("docs/guide/threads.md");
export const frameworks = at("docs/guide/frameworks.md");
const pages = [frameworks, threads];

export function listings() {
  return pages.flatMap((page) =>
    [...readFileSync(page, "utf8").matchAll(/<!-- run: (\S+), with (\S+) -->\n```diff\n(.*?)```/gs)].map(([, name, framework, diff]) => {
      const lines = diff.split("\n");
      const side = (mark) => lines.filter((line) => !line.startsWith(mark)).map((line) => line.slice(1)).join("\n");
      return { name, framework, plain: side("+"), verified: side("-"), changed: lines.filter((line) => line.startsWith("+")).length };
    }));
}

/** The page with the programs of clients/python/threads, whose lines say which side they are on. */
export function withPython(page) {
  return page.replace(/(<!-- file: (\S+) -->\n```diff\n).*?(```)/gs, (_, begin, file, end) => {
    const program = readFileSync(at(`clients/python/threads/${file}`), "utf8").replace(/^""".*?"""\n+/s, "");
    const lines = program.trimEnd().split("\n").map((line) => {
      const [, text, side] = /^(.*?)(?:  # (before|after))?$/.exec(line);
      return ({ before: "-", after: "+" }[side] ?? " ") + text;
    });
    return `${begin}${lines.map((line) => line.trimEnd()).join("\n")}\n${end}`;
  });
}
