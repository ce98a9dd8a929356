"""Pydantic AI: the tool asks the model to try again when the response is lost."""

from pydantic_ai import Agent, ModelRetry
from readback.pydantic_ai import tool  # after
from scripted import pydantic_model
from shop import post


def charge(order_id, amount_cents):
    try:
        return post(order_id, amount_cents)
    except OSError as e:
        raise ModelRetry(f"error: {e}")


@tool(destination="orders", kind="order", key=["order_id"], operation="charge:{order_id}")  # after
def charge_card(order_id: str, amount_cents: int):
    """Charges for an order."""
    return charge(order_id, amount_cents)  # before


async def run(script):
    agent = Agent(pydantic_model(script, "charge_card"), tools=[charge_card], retries=2)
    await agent.run("Charge the orders.")
