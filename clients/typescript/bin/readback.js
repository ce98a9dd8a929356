#!/usr/bin/env node
// Starts the program for this platform. It is in an optional dependency, of which npm installs
// the one that fits.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";

const require = createRequire(import.meta.url);
const { version } = require("../package.json");
const name = `@readback/${process.platform}-${process.arch}`;

let program;
try {
  if (require(`${name}/package.json`).version !== version) throw new Error("it is that of another version");
  program = require.resolve(`${name}/bin/readback${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`readback: the program ${version} for this platform is missing: npm did not install ${name}@${version}.
Install it with: npm install ${name}@${version}
If there is no such package, build the program: go install github.com/readback-go/readback/cmd/readback@v${version}`);
  process.exit(127); // as a shell does for a program that is missing
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`readback: ${program} did not start: ${error.message}`);
  process.exit(126);
});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
const terminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
process.on("SIGINT", () => terminal || child.kill("SIGINT")); // a terminal sends it to the program too, and a second one ends that at once
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.exitCode = 128 + constants.signals[signal]; // Node ignores SIGPIPE
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
