"""microsoft/agent-framework#3938: two writes work and a third call fails; resumed from the checkpoint before, both are repeated.

A node of LangGraph stands in for the superstep.
"""

from typing import List, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from readback.langgraph import verified  # after
from shop import post


@verified(destination="orders", kind="order", key=["order_id"])  # after
def send_email(order_id: str, amount_cents: int):
    """Sends the bill of an order."""
    return post(order_id, amount_cents)  # before


class State(TypedDict, total=False):
    orders: List[str]


down = [True, True]


def superstep(state: State) -> State:
    for order_id in state["orders"]:
        send_email(order_id, 1999)
    if down and down.pop():
        raise RuntimeError("notify_slack cannot be reached")
    return {}


def run(script):
    builder = StateGraph(State)
    builder.add_node("superstep", superstep)
    builder.add_edge(START, "superstep")
    builder.add_edge("superstep", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "job-" + script.orders[0]}}
    given = {"orders": script.orders}
    for _ in range(4):
        try:
            graph.invoke(given, config)
            break
        except (OSError, RuntimeError):
            given = None  # from the checkpoint
