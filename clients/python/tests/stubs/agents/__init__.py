"""Stub of openai-agents 0.22.0: a run calls tools, hands their exceptions to the model, and stops for approvals."""

import asyncio
import inspect
import json
from dataclasses import dataclass, field
from typing import Any, List, Optional, get_origin, get_type_hints

from agents.tool_context import RunContextWrapper, ToolContext


def set_tracing_disabled(disabled):
    pass


class Model:
    pass


@dataclass
class Usage:
    requests: int = 0


@dataclass
class ModelResponse:
    output: List[Any]
    usage: Usage
    response_id: Optional[str]


class FunctionTool:
    def __init__(self, function, needs_approval):
        self.function, self.needs_approval, self.name, self.description = function, needs_approval, function.__name__, function.__doc__
        self.hints = {name: kind for name, kind in get_type_hints(function).items() if name != "return"}
        first = next(iter(self.hints.values()), None)
        self.takes_context = (get_origin(first) or first) in (RunContextWrapper, ToolContext)

    async def on_invoke_tool(self, ctx, arguments):
        try:
            given = {name: self.hints[name](value) if self.hints[name] in (int, float) else value for name, value in json.loads(arguments).items()}
            args = (ctx,) if self.takes_context else ()
            if inspect.iscoroutinefunction(self.function):
                return await self.function(*args, **given)
            return await asyncio.to_thread(self.function, *args, **given)
        except Exception as e:
            return f"An error occurred while running the tool. Please try again. Error: {e}"


def function_tool(function=None, *, needs_approval=False):
    return FunctionTool(function, needs_approval) if function else lambda f: FunctionTool(f, needs_approval)


@dataclass
class Agent:
    name: str
    model: Any = None
    tools: List[Any] = field(default_factory=list)
    tool_use_behavior: Any = "run_llm_again"


@dataclass
class FunctionToolResult:
    tool: Any
    output: Any


@dataclass
class ToolsToFinalOutputResult:
    is_final_output: bool
    final_output: Any = None


class ToolApprovalItem:
    def __init__(self, call):
        self.raw_item, self.name, self.arguments = call, call["name"], call["arguments"]


class RunState:
    def __init__(self, context, items, calls):
        self.context, self.items, self.calls, self.decisions = context, items, calls, {}

    def to_json(self):
        return {"context": self.context, "items": self.items, "calls": self.calls, "decisions": self.decisions}

    @staticmethod
    async def from_json(agent, data):
        state = RunState(data["context"], list(data["items"]), data["calls"])
        state.decisions = dict(data["decisions"])
        return state

    def get_interruptions(self):
        return [ToolApprovalItem(call) for call in self.calls if call["call_id"] not in self.decisions]

    def approve(self, item):
        self.decisions[item.raw_item["call_id"]] = True

    def reject(self, item):
        self.decisions[item.raw_item["call_id"]] = False


@dataclass
class RunResult:
    state: RunState
    final_output: Any
    interruptions: List[Any]

    def to_state(self):
        return self.state

    def to_input_list(self):
        return list(self.state.items)


class Runner:
    @classmethod
    async def run(cls, agent, input, *, context=None, max_turns=10):
        resumed = isinstance(input, RunState)
        state = input if resumed else RunState(context, [{"role": "user", "content": input}] if isinstance(input, str) else list(input), [])
        for turn in range(max_turns):
            if not (resumed and turn == 0):
                response = await agent.model.get_response(None, list(state.items), None, agent.tools, None, [], None,
                                                          previous_response_id=None, conversation_id=None, prompt=None)
                state.calls = []
                for item in response.output:
                    if item.type == "message":
                        state.items.append({"role": "assistant", "content": item.content[0].text})
                    else:
                        state.calls.append({"type": item.type, "name": item.name, "call_id": item.call_id, "arguments": item.arguments})
                if not state.calls:
                    return RunResult(state, state.items[-1]["content"], [])
            done = await asyncio.gather(*(cls.called(agent, state, call) for call in state.calls))
            if None in done:
                return RunResult(state, None, state.get_interruptions())
            state.items += state.calls + [{"type": "function_call_output", "call_id": c["call_id"], "output": r.output} for c, r in zip(state.calls, done)]
            if callable(agent.tool_use_behavior):
                final = agent.tool_use_behavior(RunContextWrapper(state.context), done)
                final = await final if inspect.isawaitable(final) else final
                if final.is_final_output:
                    return RunResult(state, final.final_output, [])
        raise RuntimeError("Max turns exceeded")

    @staticmethod
    async def called(agent, state, call):
        """Calls a tool, or returns None while its approval is missing."""
        tool = next(t for t in agent.tools if t.name == call["name"])
        approved, needs = state.decisions.get(call["call_id"]), tool.needs_approval
        if approved is None and callable(needs):
            needs = await needs(RunContextWrapper(state.context), json.loads(call["arguments"]), call["call_id"])
        if approved is None and needs:
            return None
        if approved is False:
            return FunctionToolResult(tool, "Tool execution was not approved.")
        ctx = ToolContext(state.context, tool_name=tool.name, tool_call_id=call["call_id"], tool_arguments=call["arguments"])
        return FunctionToolResult(tool, await tool.on_invoke_tool(ctx, call["arguments"]))
