import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const client = createClient<paths>({ baseUrl: process.argv[2]!, headers: { Authorization: "Bearer agent" } });

const intent: components["schemas"]["WriteIntent"] = {
  tool: "charge", destination: "orders", kind: "order", write: "create",
  key: { order_id: "A-1" },
  expect: { amount_cents: 1200, note: null, customer: { name: "Ada", tags: ["a", 1, true] } },
  payload: { channel: "web" },
};

const { data, error } = await client.POST("/v1/writes", {
  params: { header: { "Idempotency-Key": "k-1", Prefer: "wait=20" } },
  body: intent,
});
if (error) {
  const tooLarge: "https://readback.invalid/problems/too-large" | undefined = error.status === 413 ? error.type : undefined;
  console.log(error.title, error.detail, tooLarge);
} else {
  console.log(data.id, data.status, data.text);
}

const batch = await client.POST("/v1/writes/batch", {
  params: { header: { Prefer: "wait=20" } },
  body: { writes: [intent, { ...intent, idempotency_key: "k-2" }] },
});
const ids: string[] = [];
for (const result of batch.data?.results ?? []) {
  if (result.outcome) {
    ids.push(result.outcome.id);
  } else {
    console.log(result.status, result.problem?.title, result.retry_after);
  }
}
const outcomes = await client.GET("/v1/writes/batch", { params: { query: { id: ids }, header: { Prefer: "wait=20" } } });
console.log(outcomes.data?.results.map((result) => result.outcome?.status));
