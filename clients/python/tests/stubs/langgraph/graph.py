import asyncio
import inspect
from contextvars import copy_context

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import current
from langgraph.types import Command, GraphInterrupt, Interrupt, RetryPolicy

START, END = "__start__", "__end__"


class StateGraph:
    def __init__(self, schema):
        self.nodes, self.edges, self.ways = {}, {}, {}

    def add_node(self, name, action, *, retry_policy=None):
        self.nodes[name] = action, retry_policy or RetryPolicy(max_attempts=1)
        return self

    def add_edge(self, start, end):
        self.edges[start] = end
        return self

    def add_conditional_edges(self, source, path, path_map=None):
        assert path_map is None or set(path_map) <= set(self.nodes) | {END}, path_map
        self.ways[source] = path
        return self

    def compile(self, checkpointer=None):
        return Graph(self, checkpointer)


class Task:
    """One node that has begun: what was answered is kept until it has ended."""

    def __init__(self, thread, name, step):
        self.thread, self.name, self.step, self.answers, self.asked = thread, name, step, [], 0


class Graph:
    def __init__(self, builder, checkpointer):
        self.builder, self.checkpointer = builder, checkpointer

    def invoke(self, given, config=None):
        config = config or current.get()  # a graph within a node
        thread, saver = config["configurable"]["thread_id"], self.checkpointer or InMemorySaver()
        if isinstance(given, dict):
            before = saver.threads.get(thread)
            saver.put(thread, ({**(before[0] if before else {}), **given}, Task(thread, self.builder.edges[START], before[1].step + 1 if before else 1)))
        state, task = saver.threads[thread]
        if isinstance(given, Command):
            task.answers.append(given.resume)
        while task.name != END:
            try:
                got = self.attempt(task, state, config)
            except GraphInterrupt as why:
                return {**state, "__interrupt__": [Interrupt(why.args[0], f"{task.name}:{task.step}")]}
            after = {**state, **(got or {})}
            way = self.builder.ways.get(task.name)
            to = Task(thread, way(after) if way else self.builder.edges[task.name], task.step + 1)
            saver.put(thread, (after, to))
            state, task = after, to
        return state

    async def ainvoke(self, given, config=None):
        return await asyncio.to_thread(self.invoke, given, config)

    def attempt(self, task, state, config):
        """Runs a node, and again from its first line after an exception that its policy retries."""
        action, policy = self.builder.nodes[task.name]
        context = copy_context()
        for attempt in range(1, policy.max_attempts + 1):
            task.asked = 0
            try:
                return context.run(self.call, action, state, {
                    "metadata": {"langgraph_node": task.name, "langgraph_step": task.step},
                    "configurable": {**config["configurable"], "checkpoint_ns": f"{task.name}:{task.step}", "__task__": task}})
            except GraphInterrupt:
                raise
            except Exception as e:
                if attempt == policy.max_attempts or not isinstance(e, policy.retry_on):
                    raise

    def call(self, action, state, config):
        current.set(config)
        got = action(state, config) if len(inspect.signature(action).parameters) > 1 else action(state)
        return asyncio.run(got) if inspect.isawaitable(got) else got
