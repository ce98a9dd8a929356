"""The code that the test of docs/guide/your-200-lines.md is about: it repeats a failed request.
With PAY_READS it reads first whether the order is there."""
import http.client
import json
import os
import urllib.request


def pay(api, order):
    body = json.dumps({"order": {"order_id": order, "amount_cents": 1999}}).encode()
    for attempt in range(3):
        try:
            urllib.request.urlopen(urllib.request.Request(f"{api}/orders", body, method="POST"))
            return
        except (OSError, http.client.HTTPException):
            if os.environ.get("PAY_READS") and json.load(urllib.request.urlopen(f"{api}/orders?order_id={order}"))["orders"]:
                return
    raise RuntimeError("no order was confirmed")
