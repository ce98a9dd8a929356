"""For LangGraph (langgraph, langchain-core): verified for what a node calls, tool for what a model calls."""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from typing import Any, Callable, Optional, Tuple

from ._client import AsyncClient, Client
from ._place import Place
from ._tool import ends, late, results, shaped

# The configuration of a pass of a node, and the place that counts its calls. Each pass, also a retry,
# has a configuration object of its own: a count that a retry continued would make its writes anew.
passes: ContextVar[Optional[Tuple[Any, Place[Any]]]] = ContextVar("readback.langgraph", default=None)


def node(client: Any) -> Optional[Place[Any]]:
    from langgraph.config import get_config
    config, kept = get_config(), passes.get()
    if kept is None or kept[0] is not config:
        kept = config, Place(client._at, config["configurable"].get("thread_id") or "", config["metadata"]["langgraph_node"])
        passes.set(kept)
    return kept[1]


def verified(*, client: Any = None, place: Callable[[Any], Optional[Place[Any]]] = node,
             **declaration: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function of a node, also an async one (from Python 3.11 on), declare a write as Client.verified does.

    The thread and the node name it: a node that is retried, resumed or replayed makes the same
    writes. While a reviewer decides, it interrupts the graph: invoke(None, config) continues it, and
    a value to resume with would answer the node's next interrupt. An outcome that is not verified
    is raised, as NotVerified. A node that a thread reaches again, as in a conversation, or several
    times at once, as with Send, is the same step: there, and for calls in tasks of your own, use tool.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        from langgraph.types import interrupt
        get = late(client, AsyncClient if inspect.iscoroutinefunction(function) else Client, function, declaration)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return get()._run(ends(get(), place(get()), interrupt, function, declaration, args, kwargs))
        return call
    return decorate


def tool(*, operation: str, client: Optional[Client] = None, **declaration: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a function a tool for a model, as verified does. operation names the write, for ever."""
    def decorate(function: Callable[..., Any]) -> Any:
        from langchain_core.tools import tool as langchain_tool
        ask = verified(client=client, place=lambda _: None, operation=operation, **declaration)(function)
        return langchain_tool(shaped(results(ask), function, str))
    return decorate
