import type { Order } from "./shop.js";

export type Turn = { id: string; order: Order } | "done";

/**
 * A model that charges for each order. As models do, it calls again after an error, with a new id; it
 * follows what_to_do.
 */
export function script(orders: string[]): (results: string[]) => Turn {
  let calls = 0;
  return (results) => {
    let order = 0;
    for (const result of results) if (/^"?ord_|what_to_do/.test(result)) order++;
    const id = orders[order];
    if (id === undefined || results.length > 3 * orders.length) return "done";
    return { id: `call_${++calls}`, order: { order_id: id, amount_cents: 1999 } };
  };
}
