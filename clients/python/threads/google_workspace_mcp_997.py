"""taylorwilsdon/google_workspace_mcp#997: a client below the tool sends again after each lost response: four mails for one call.

The function is a tool of an MCP server there. Here the script calls it.
"""

import readback  # after
from shop import post


def resending(order_id, amount_cents):
    for attempt in range(3):
        try:
            return post(order_id, amount_cents)
        except OSError:
            pass
    return post(order_id, amount_cents)


@readback.Client().verified(destination="orders", kind="order", key=["order_id"], operation="mail:{order_id}")  # after
def send_mail(order_id: str, amount_cents: int):
    """Sends a mail."""
    return resending(order_id, amount_cents)  # before


def run(script):
    wants = script()
    while wants:
        try:
            got = send_mail(**wants[1])
        except OSError as e:
            got = f"error: {e}"
        wants = script(got)
