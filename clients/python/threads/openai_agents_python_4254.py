"""openai/openai-agents-python#4254: the tool refunds and its response is lost; the model calls it again, with a new call ID."""

from agents import Agent, Runner, function_tool
from readback.openai_agents import tool  # after
from scripted import openai_model
from shop import post


@function_tool  # before
@tool(destination="orders", kind="order", key=["order_id"], operation="refund:{order_id}")  # after
def refund(order_id: str, amount_cents: int) -> str:
    """Refunds an order."""
    return post(order_id, amount_cents)  # before


async def run(script):
    agent = Agent(name="support", model=openai_model(script, "refund"), tools=[refund])
    await Runner.run(agent, "Refund the orders.", max_turns=20)
