"""The client of readback: writes to systems that you do not own, once, and verified.

    with readback.Client() as rb:  # READBACK_URL, READBACK_TOKEN
        outcome = rb.write({
            "workflow": "invoice-run-7", "step": "charge-A-1", "tool": "charge_card",
            "destination": "orders", "kind": "order", "write": "create",
            "key": {"order_id": "A-1"}, "expect": {"amount_cents": 1999, "currency": "EUR"}})
        print(outcome.status, outcome.ref)

A write is named by its place in the program. The same place and content is the same write, in
every run and process: a repeat sends nothing and returns the outcome.
"""

from ._client import AsyncClient, Client
from ._outcome import Error, Intent, NotKnown, NotVerified, Outcome, Refused, ToolResult
from ._place import Place
from ._webhook import BadSignature, verify_webhook

__version__ = "0.1.0"

__all__ = [
    "AsyncClient", "BadSignature", "Client", "Error", "Intent", "NotKnown", "NotVerified",
    "Outcome", "Place", "Refused", "ToolResult", "verify_webhook",
]
