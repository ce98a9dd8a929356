from typing import Any, Callable, NamedTuple

from langgraph.config import current


class RetryPolicy(NamedTuple):
    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: Any = Exception


class Command:
    def __init__(self, *, resume):
        self.resume = resume


class Interrupt:
    def __init__(self, value, id):
        self.value, self.id = value, id


class GraphInterrupt(Exception):
    pass


def interrupt(value):
    """The n-th question of a node has the n-th answer; the first without one stops the graph."""
    task = current.get()["configurable"]["__task__"]
    task.asked += 1
    if task.asked <= len(task.answers):
        return task.answers[task.asked - 1]
    raise GraphInterrupt(value)
