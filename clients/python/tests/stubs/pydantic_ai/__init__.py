"""Stub of pydantic-ai 2.30: tools with a RunContext, ModelRetry, and calls that wait for an approval."""

import asyncio
import inspect
from dataclasses import dataclass, field
from typing import Any, Dict, Generic, List, Optional, TypeVar, get_type_hints

from pydantic_ai.messages import ModelRequest, RetryPromptPart, ToolReturnPart, UserPromptPart

D = TypeVar("D")


class ModelRetry(Exception):
    pass


class ApprovalRequired(Exception):
    def __init__(self, metadata=None):
        super().__init__()
        self.metadata = metadata


class UserError(RuntimeError):
    pass


@dataclass
class RunContext(Generic[D]):
    deps: D
    tool_call_id: Optional[str] = None
    tool_call_approved: bool = False


class Tool:
    def __init__(self, function, *, takes_ctx=None):
        self.function, self.name, self.description = function, function.__name__, function.__doc__
        self.hints, self.takes_ctx = get_type_hints(function), takes_ctx

    async def call(self, ctx, given):
        given = {name: self.hints[name](value) if self.hints[name] in (int, float) else value for name, value in given.items()}
        got = self.function(ctx, **given) if self.takes_ctx else self.function(**given)
        return await got if inspect.isawaitable(got) else got


@dataclass
class DeferredToolRequests:
    calls: List[Any] = field(default_factory=list)
    approvals: List[Any] = field(default_factory=list)
    metadata: Dict[str, Any] = field(default_factory=dict)


@dataclass
class DeferredToolResults:
    approvals: Dict[str, bool] = field(default_factory=dict)


@dataclass
class RunResult:
    output: Any
    messages: List[Any]

    def all_messages(self):
        return list(self.messages)


class Agent:
    def __init__(self, model, *, deps_type=None, tools=(), output_type=str, retries=1):
        self.model, self.output_type, self.retries = model, output_type, retries
        self.tools = {t.name: t for t in (t if isinstance(t, Tool) else Tool(t) for t in tools)}

    async def run(self, prompt=None, *, deps=None, message_history=(), deferred_tool_results=None):
        messages, retried = list(message_history), 0
        approvals = deferred_tool_results.approvals if deferred_tool_results else {}
        if not deferred_tool_results:
            messages.append(ModelRequest([UserPromptPart(prompt)]))
            messages.append(self.model.function(messages, None))
        while True:
            calls = [part for part in messages[-1].parts if part.part_kind == "tool-call"]
            if not calls:
                return RunResult(messages[-1].parts[0].content, messages)
            waiting, parts = DeferredToolRequests(), []
            got = await asyncio.gather(*(self.tools[call.tool_name].call(
                RunContext(deps, call.tool_call_id, approvals.get(call.tool_call_id, False)), call.args) for call in calls), return_exceptions=True)
            for call, result in zip(calls, got):
                if isinstance(result, ApprovalRequired):
                    waiting.approvals.append(call)
                    waiting.metadata[call.tool_call_id] = result.metadata
                elif isinstance(result, ModelRetry):
                    retried += 1
                    if retried > self.retries:
                        raise RuntimeError("Tool exceeded max retries count") from result
                    parts.append(RetryPromptPart(str(result), call.tool_name, call.tool_call_id))
                elif isinstance(result, BaseException):
                    raise result
                else:
                    parts.append(ToolReturnPart(call.tool_name, result, call.tool_call_id))
            if waiting.approvals:
                if DeferredToolRequests not in (self.output_type if isinstance(self.output_type, list) else [self.output_type]):
                    raise UserError("A deferred tool call was present, but `DeferredToolRequests` is not among output types.")
                return RunResult(waiting, messages)
            approvals = {}
            messages.append(ModelRequest(parts))
            messages.append(self.model.function(messages, None))
