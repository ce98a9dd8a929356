// The code that the test of docs/guide/your-200-lines.md is about: it repeats a failed request.
// With PAY_READS it reads first whether the order is there.
export async function pay(api: string, order: string) {
  for (let attempt = 1; ; attempt++) {
    try {
      await fetch(`${api}/orders`, { method: "POST", body: JSON.stringify({ order: { order_id: order, amount_cents: 1999 } }) });
      return;
    } catch (e) {
      if (attempt === 3) throw e;
      if (!process.env.PAY_READS) continue;
      const found = (await (await fetch(`${api}/orders?order_id=${order}`)).json()) as { orders: unknown[] };
      if (found.orders.length > 0) return;
    }
  }
}
