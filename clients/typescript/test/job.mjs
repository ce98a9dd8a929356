// A job of many orders, for fire.test.mjs, which kills it and starts it again with the same calls.
// Its connection loses requests and responses.
import { Readback } from "readback";
import { order } from "./world.mjs";

const [many, seed] = process.argv.slice(2).map(Number);
let state = seed;
const chance = () => (state = (state * 48271) % 2147483647) / 2147483647;

const rb = new Readback({
  patienceMs: 120_000,
  fetch: async (...request) => {
    const luck = chance();
    if (luck < 0.05) throw new TypeError("the request was lost");
    const response = await fetch(...request);
    if (luck < 0.1) {
      await response.arrayBuffer();
      throw new TypeError("the response was lost");
    }
    return response;
  },
});

let next = 0;
async function lane() {
  while (next < many) {
    const id = `A-${next++}`;
    const outcome = await rb.workflow("fulfilment-7").step(`charge-${id}`).write(order(id));
    process.stdout.write(`${JSON.stringify({ order: id, id: outcome.id, status: outcome.status })}\n`);
  }
}
await Promise.all(Array.from({ length: 64 }, lane));
