"""For the Agent Development Kit (google-adk, from 1.14 on)."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from ._client import AsyncClient
from ._tool import asked, shaped, waits


def tool(*, operation: str, client: Optional[AsyncClient] = None, workflow: Optional[Callable[[Any], str]] = None,
         **declaration: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a tool of a function that declares a write; the model gets its outcome.

    operation names the write. workflow gets the ToolContext and names the run:
    lambda c: c.state["run_id"]. For a write that waits for a reviewer it requests a confirmation.
    To confirm only makes the call again: the reviewer of readback decides.
    """
    def decorate(function: Callable[..., Any]) -> Any:
        from google.adk.tools import FunctionTool, ToolContext

        ask = asked(function, client, workflow, operation=operation, **declaration)

        async def call(tool_context: Any, *args: Any, **kwargs: Any) -> Any:
            answer = await ask(tool_context, *args, **kwargs)
            waiting = waits(answer)
            if waiting:
                tool_context.request_confirmation(hint=waiting["why"], payload=waiting)
                tool_context.actions.skip_summarization = True
            return answer.tool_result

        return FunctionTool(shaped(call, function, Dict[str, Any], tool_context=ToolContext))

    return decorate
