"""For Pydantic AI (pydantic-ai).

    @readback.pydantic_ai.tool(destination="orders", kind="order", key=["order_id"], operation="charge:{order_id}")
    def charge_card(order_id: str, amount_cents: int, currency: str = "EUR") -> None:
        \"""Charges for an order.\"""

    agent = Agent(..., tools=[charge_card], output_type=[str, DeferredToolRequests])
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from ._client import AsyncClient
from ._tool import asked, shaped, waits


def tool(*, operation: str, client: Optional[AsyncClient] = None, workflow: Optional[Callable[[Any], str]] = None,
         **declaration: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a tool of a function that declares a write; the model gets its outcome.

    operation names the write. workflow gets the RunContext and names the run:
    lambda c: c.deps.run_id. A write that waits for a reviewer is a call that requires approval:
    have DeferredToolRequests in the agent's output_type. To approve the call only makes it again:
    the reviewer of readback decides.
    """
    def decorate(function: Callable[..., Any]) -> Any:
        from pydantic_ai import ApprovalRequired, RunContext, Tool

        ask = asked(function, client, workflow, operation=operation, **declaration)

        async def call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
            answer = await ask(ctx, *args, **kwargs)
            if waits(answer):
                raise ApprovalRequired(metadata=waits(answer))
            return answer.tool_result

        return Tool(shaped(call, function, Dict[str, Any], ctx=RunContext[Any]), takes_ctx=True)

    return decorate
