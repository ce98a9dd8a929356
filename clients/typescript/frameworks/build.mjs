// Makes the programs of the pages, before (plain) and after (verified), for the tests. Each framework has a
// folder of its own: their peers exclude each other. A program is compiled with the packed files of readback
// beside its framework, as users have them.
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { listings } from "./listings.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const run = promisify(execFile);

async function build(framework, all) {
  const folder = join(here, framework);
  const out = join(folder, "build");
  const installed = join(folder, "node_modules/.package-lock.json");
  if (existsSync(join(folder, "package.json")) && !(existsSync(installed) && statSync(installed).mtimeMs > statSync(join(folder, "package-lock.json")).mtimeMs)) {
    await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"], { cwd: folder });
  }
  const readback = join(folder, "node_modules/readback");
  rmSync(readback, { recursive: true, force: true });
  for (const part of ["package.json", "dist"]) cpSync(join(root, part), join(readback, part), { recursive: true });
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  for (const from of [here, folder]) {
    for (const file of readdirSync(from).filter((name) => name.endsWith(".ts"))) cpSync(join(from, file), join(out, file));
  }
  for (const { name, plain, verified } of all) {
    writeFileSync(join(out, `${name}.plain.ts`), plain);
    writeFileSync(join(out, `${name}.verified.ts`), verified);
  }
  writeFileSync(join(out, "package.json"), '{"type": "module"}');
  writeFileSync(join(out, "tsconfig.json"), JSON.stringify({
    compilerOptions: { strict: true, noUncheckedIndexedAccess: true, module: "nodenext", target: "es2022", skipLibCheck: true, typeRoots: [join(root, "node_modules/@types")], types: ["node"] },
    include: ["*.ts"],
  }));
  await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", out]);
}

const all = listings();
const queue = [...new Set(all.map(({ framework }) => framework))].filter((framework) => process.argv.length < 3 || process.argv.includes(framework));
let failed = false;
await Promise.all([0, 1].map(async () => {
  for (let next = queue.shift(); next; next = queue.shift()) {
    const start = performance.now();
    try {
      await build(next, all.filter(({ framework }) => framework === next));
      console.log(`${next}: built in ${((performance.now() - start) / 1000).toFixed(1)} s`);
    } catch (error) {
      failed = true;
      console.error(`${next}: ${error.stdout}${error.stderr}${error.message}`);
    }
  }
}));
process.exit(failed ? 1 : 0);
