// A real server, and a destination that loses responses, for tests. Both end with the test.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const binary = process.env.READBACK_BINARY ?? join(root, "../../bin/readback");

/** Starts a program, and returns it with its first line. */
async function started(cwd, args) {
  const program = spawn(binary, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  program.stderr.setEncoding("utf8").on("data", (text) => (errors = (errors + text).slice(-4000)));
  const line = await new Promise((resolve, reject) => {
    program.on("error", reject).on("exit", (code) => reject(new Error(`readback ${args[0]} ended with ${code}: ${errors}`)));
    createInterface(program.stdout).once("line", resolve);
  });
  program.removeAllListeners("exit");
  return { program, line };
}

async function ended(program, signal) {
  if (program.exitCode !== null || program.signalCode !== null) return;
  const end = new Promise((resolve) => program.once("exit", resolve));
  program.kill(signal);
  await end;
}

export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a destination with faults, such as "lost-answer,op=create,times=1", and a server for it. */
export async function world(t, { faults = [], config = "", flags = [], class: of = "plain" } = {}) {
  const dir = mkdtempSync(join(tmpdir(), "readback-typescript-"));
  const shop = await started(dir, ["simulated-orders", "--address", "127.0.0.1:0", "--class", of, ...faults.flatMap((f) => ["--fault", f])]);
  const shopURL = shop.line.match(/http:\/\/[^\s"]+/)[0];
  writeFileSync(join(dir, "readback.yaml"), `ledger: readback.db
destinations:
  orders: {type: simulated, url: "${shopURL}", class: ${of}, horizon: 1s}
server: {person_tokens: true}
${config}`);
  const url = `http://127.0.0.1:${await freePort()}`;
  const serve = () => started(dir, ["serve", "--listen", url.slice("http://".length), ...flags]);
  let server = await serve();
  t.after(async () => {
    await ended(server.program, "SIGTERM");
    await ended(shop.program, "SIGTERM");
    rmSync(dir, { recursive: true, force: true });
  });
  const token = (role) => execFileSync(binary, ["token", "create", "--role", role, "--name", `${role}-1`], { cwd: dir, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  return {
    url, dir, shop: shopURL, token, agent: token("agent"),
    /** Sets the destination's faults; [] ends them. */
    faults: async (lines) => {
      const response = await fetch(`${shopURL}/faults`, lines.length ? { method: "PUT", body: lines.join("\n") } : { method: "DELETE" });
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    },
    /** The orders with this number at the destination. */
    orders: async (id) => (await (await fetch(`${shopURL}/orders?order_id=${encodeURIComponent(id)}`)).json()).orders,
    effects: async (path = "effects") => (await fetch(`${shopURL}/${path}`)).json(),
    kill: () => ended(server.program, "SIGKILL"),
    restart: async () => {
      await ended(server.program, "SIGKILL");
      server = await serve();
    },
  };
}

/** The intent of an order, without a name. */
export const order = (id, amount = 1999) => ({
  tool: "charge_card", destination: "orders", kind: "order", write: "create",
  key: { order_id: id }, expect: { amount_cents: amount, currency: "EUR" },
});
