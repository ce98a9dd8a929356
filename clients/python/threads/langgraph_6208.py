"""langchain-ai/langgraph#6208: a node writes and then asks two questions; each answer begins it again, from its first line."""

from typing import List, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt
from readback.langgraph import verified  # after
from shop import post


@verified(destination="orders", kind="order", key=["order_id"])  # after
def charge_card(order_id: str, amount_cents: int):
    """Charges for an order."""
    return post(order_id, amount_cents)  # before


class State(TypedDict, total=False):
    orders: List[str]


def charge(state: State) -> State:
    for order_id in state["orders"]:
        charge_card(order_id, 1999)
    interrupt("Which address?")
    interrupt("Which day?")
    return {}


def run(script):
    builder = StateGraph(State)
    builder.add_node("charge", charge, retry_policy=RetryPolicy(initial_interval=0.01, retry_on=Exception))
    builder.add_edge(START, "charge")
    builder.add_edge("charge", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "job-" + script.orders[0]}}
    graph.invoke({"orders": script.orders}, config)
    graph.invoke(Command(resume="Main Street 1"), config)
    graph.invoke(Command(resume="Monday"), config)
