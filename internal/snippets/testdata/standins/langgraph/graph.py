"""A stand-in for the graph of LangGraph, as far as the page needs it: what a node
returns is kept when the node has ended, and a node that has not ended begins anew."""

from langgraph import types

START, END = "__start__", "__end__"


class StateGraph:
    def __init__(self, schema):
        self.nodes, self.edges, self.ways = {}, {}, {}

    def add_node(self, name, does):
        self.nodes[name] = does

    def add_edge(self, start, end):
        self.edges[start] = end

    def add_conditional_edges(self, start, way, ends):
        assert set(ends) <= set(self.nodes) | {END}, ends
        self.ways[start] = way

    def compile(self, checkpointer):
        return Graph(self, checkpointer)


class Graph:
    def __init__(self, builder, threads):
        self.builder, self.threads = builder, threads
        self.dies_after = None  # the name of a node whose end is never kept

    def invoke(self, given, config):
        thread = config["configurable"]["thread_id"]
        types.answers[:] = [given.resume] if isinstance(given, types.Command) else []
        if isinstance(given, dict):
            state = {**self.threads.get(thread, ({},))[0], **given}
            self.threads[thread] = (state, self.builder.edges[START])
        state, at = self.threads[thread]
        while at != END:
            try:
                got = self.call(at, state, config)
            except types.Interrupted as why:
                return {**state, "__interrupt__": why.args}
            if self.dies_after == at:
                raise SystemError("killed after " + at)
            state = {**state, **got}
            at = self.builder.ways[at](state) if at in self.builder.ways else self.builder.edges[at]
            self.threads[thread] = (state, at)
        return state

    def call(self, name, state, config):
        does = self.builder.nodes[name]
        return does(state, config) if does.__code__.co_argcount > 1 else does(state)
