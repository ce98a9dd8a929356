export interface Order {
  order_id: string;
  amount_cents: number;
}

/** The usual code of a tool: one request, and an error where no answer comes. */
export async function post(order: Order): Promise<string> {
  const response = await fetch(`${process.env.SHOP_URL}/orders`, { method: "POST", body: JSON.stringify({ order }) });
  if (!response.ok) throw new Error(`${response.status}`);
  return ((await response.json()) as { id: string }).id;
}
