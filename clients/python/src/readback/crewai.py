"""For CrewAI (crewai)."""

from __future__ import annotations

from typing import Any, Callable, Optional

from ._client import Client
from ._outcome import Outcome
from ._place import within
from ._tool import late, results, shaped


def tool(*, operation: str, client: Optional[Client] = None, **declaration: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a tool of a function that declares a write; the model gets its outcome.

    operation names the write, for ever: CrewAI gives a tool neither the ID of the call nor that of
    the run. CrewAI cannot interrupt a tool: while a reviewer decides, the result instructs the
    model to wait.
    """
    declaration["operation"] = operation

    def decorate(function: Callable[..., Any]) -> Any:
        from crewai.tools import tool as crewai_tool

        get = late(client, Client, function, declaration)

        def ask(*args: Any, **kwargs: Any) -> Outcome:
            with within(None):
                outcome: Outcome = get().verified(**declaration)(function)(*args, **kwargs)
                return outcome

        made = crewai_tool(shaped(results(ask), function, str))
        made.cache_function = lambda *_: False  # a write in progress has another outcome later
        return made

    return decorate
