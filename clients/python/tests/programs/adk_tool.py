"""ADK: the tool returns its error, and the model calls it again."""

from google.adk.agents import Agent
from google.adk.runners import InMemoryRunner
from google.genai import types
from readback.adk import tool  # after
from scripted import adk_model
from shop import post


def charge(order_id, amount_cents):
    try:
        return {"id": post(order_id, amount_cents)}
    except OSError as e:
        return {"error": str(e)}


@tool(destination="orders", kind="order", key=["order_id"], operation="charge:{order_id}")  # after
def charge_card(order_id: str, amount_cents: int):
    """Charges for an order."""
    return charge(order_id, amount_cents)  # before


async def run(script):
    runner = InMemoryRunner(Agent(name="clerk", model=adk_model(script, "charge_card"), tools=[charge_card]), app_name="shop")
    session = await runner.session_service.create_session(app_name="shop", user_id="ada")
    message = types.Content(role="user", parts=[types.Part(text="Charge the orders.")])
    async for _ in runner.run_async(user_id="ada", session_id=session.id, new_message=message):
        pass
