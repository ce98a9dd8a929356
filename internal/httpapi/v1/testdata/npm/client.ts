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

// A call of each other route, with what is used of its answer.
const path = { id: ids[0]! };
const wait = { header: { Prefer: "wait=20, final" } };
const page = await client.GET("/v1/writes", { params: { query: { status: ["review", "held"], key: '{"order_id":"A-1"}', limit: 10, oldest: "true" } } });
const next: string | undefined = page.data?.next;
const one = await client.GET("/v1/writes/{id}", { params: { path, ...wait } });
const waits: "queue" | "reviewer" | "login" | "breaker" | "rate" | "busy" | "stopped" | "destination" | "recovery" | undefined = one.data?.waits_for;
const later: string | undefined = one.data?.ask_again === "after" ? one.data.ask_after : one.data?.recheck_until;
const record = await client.GET("/v1/writes/{id}/record", { params: { path } });
const life = await client.GET("/v1/writes/{id}/events", { params: { path } });
const receipt = await client.GET("/v1/writes/{id}/receipt", { params: { path, query: { values: "true" } } });
const decided = await client.POST("/v1/writes/{id}/decision", { params: { path, ...wait }, body: { word: "approve", reason: "right", seq: 3 } });
const yielded = await client.POST("/v1/writes/{id}/yield", { params: { path }, body: { reason: "another run makes it" } });
const events = await client.GET("/v1/events", { params: { query: { write: path.id }, header: { "Last-Event-ID": "c1" } }, parseAs: "stream" });
const saga = await client.POST("/v1/sagas", {
  body: { id: "trip-1", steps: [{ name: "hotel", intent: { tool: "book", destination: "orders", kind: "order", write: "create", key: { order_id: "H-1" }, expect: { nights: 2 } }, undo: { write: "delete" } }] },
});
const sagas = await client.GET("/v1/sagas", { params: { query: { limit: 10 } } });
const trip = await client.GET("/v1/sagas/{id}", { params: { path: { id: "trip-1" } } });
await client.POST("/v1/sagas/{id}/cancel", { params: { path: { id: "trip-1" } }, body: { reason: "the guest cancelled" } });
await client.POST("/v1/sagas/{id}/close", { params: { path: { id: "trip-1" } }, body: { reason: "corrected by hand" } });
const destinations = await client.GET("/v1/destinations");
const stops = await client.GET("/v1/stops");
await client.POST("/v1/stops", { body: { destination: "orders", reason: "it fails" } });
const effect = await client.GET("/v1/stops/preview", { params: { query: { destination: "orders" } } });
await client.POST("/v1/stops/release", { body: { destination: "orders", reason: "it is well" } });
const inbox = await client.GET("/v1/inbox");
const history = await client.GET("/v1/history", { params: { query: { step: "1h" } } });
const keys = await client.GET("/v1/keys");
const document = await client.GET("/openapi.json");
console.log(next, waits, later, record.data?.outcome.status, life.data?.events.length, receipt.data?.payloadType, decided.data?.status, yielded.data?.status, events.response.status,
  saga.data?.steps.length, sagas.data?.sagas.length, trip.data?.state, destinations.data?.destinations[0]?.name, stops.data?.stops.length, effect.data, inbox.data, history.data?.since, keys.data, document.data);
