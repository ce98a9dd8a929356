"""For the Agent Development Kit (google-adk, from 1.14 on).

    @readback.adk.tool(destination="orders", kind="order", key=["order_id"], operation="charge:{order_id}")
    def charge_card(order_id: str, amount_cents: int, currency: str = "EUR") -> None:
        \"""Charges for an order.\"""

    agent = Agent(..., tools=[charge_card])
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence

from ._client import AsyncClient
from ._tool import asked, shaped, waits


def tool(*, destination: str, kind: str, key: Sequence[str], operation: str, write: str = "create", client: Optional[AsyncClient] = None,
         workflow: Optional[Callable[[Any], str]] = None, **members: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a function a tool that declares a write, as Client.verified does; the model gets its outcome.

    operation names the write: a call that the model repeats has another call ID. workflow gets the
    ToolContext and names the run, such as lambda c: c.state["run_id"]: then an operation is one
    write for 24 hours, else for ever. For a write that waits for a reviewer it requests a
    confirmation. To confirm only makes the call again: the reviewer of readback decides.
    """
    members.update(destination=destination, kind=kind, key=key, operation=operation, write=write)

    def decorate(function: Callable[..., Any]) -> Any:
        from google.adk.tools import FunctionTool, ToolContext

        ask = asked(function, client, workflow, members)

        async def call(tool_context: Any, *args: Any, **kwargs: Any) -> Any:
            answer = await ask(tool_context, tool_context.function_call_id, *args, **kwargs)
            waiting = waits(answer)
            if waiting:
                tool_context.request_confirmation(hint=waiting["why"], payload=waiting)
                tool_context.actions.skip_summarization = True
            return answer.tool_result

        return FunctionTool(shaped(call, function, Dict[str, Any], tool_context=ToolContext))

    return decorate
