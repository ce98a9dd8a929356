"""crewAIInc/crewAI#5802: the tool works, the task's guardrail rejects the text, and the task runs again with its tools."""

from crewai import Agent, Crew, Task
from crewai.tools import tool  # before
from readback.crewai import tool  # after
from scripted import crew_model
from shop import post


@tool  # before
@tool(destination="orders", kind="order", key=["order_id"], operation="charge:{order_id}")  # after
def charge_card(order_id: str, amount_cents: int) -> str:
    """Charges for an order."""
    return post(order_id, amount_cents)  # before


def run(script):
    rejected = []

    def guardrail(output):
        if rejected:
            return True, output.raw
        rejected.append(output.raw)
        script.begin()
        return False, "Name the order in the text."

    agent = Agent(role="clerk", goal="charge", backstory="", llm=crew_model(script, "charge_card"), tools=[charge_card])
    task = Task(description="Charge the orders.", expected_output="text", agent=agent, guardrail=guardrail, guardrail_max_retries=1)
    Crew(agents=[agent], tasks=[task]).kickoff()
