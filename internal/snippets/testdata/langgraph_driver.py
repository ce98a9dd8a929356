"""Calls the graph of the page (page.py) as LangGraph would."""

import sys
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from page import builder
from readback import Refused


class Dying(InMemorySaver):
    """The process dies when the node charge has ended, before that is kept."""

    def put(self, thread, checkpoint):
        if sys.argv[2] == "crash" and checkpoint[1].name == "ship" and not self.dead:
            self.dead = True
            raise SystemError("killed after charge")
        super().put(thread, checkpoint)

    dead = False


order = sys.argv[1]
graph = builder.compile(checkpointer=Dying())
config = {"configurable": {"thread_id": "job-" + order}}
given = {"order_id": order, "amount_cents": 1999}


def say(what, state):
    print(what, state["outcome"]["status"], state["outcome"]["replayed"])


if sys.argv[2] == "crash":
    try:
        graph.invoke(given, config)
    except SystemError as e:
        print(e)
    say("gone on:", graph.invoke(None, config))
    say("begun again:", graph.invoke(given, config))
    say("another thread:", graph.invoke(given, {"configurable": {"thread_id": "other-" + order}}))
    for thread in "job-" + order, "third-" + order:
        try:
            say("changed:", graph.invoke({**given, "amount_cents": 2999}, {"configurable": {"thread_id": thread}}))
        except Refused as e:
            print("changed:", e.problem["status"])
else:
    print("interrupted:", "__interrupt__" in graph.invoke(given, config))
    print("too early:", "__interrupt__" in graph.invoke(Command(resume=True), config), flush=True)
    sys.stdin.readline()  # a reviewer approves
    say("approved:", graph.invoke(Command(resume=True), config))
