"""For the OpenAI Agents SDK (openai-agents).

    @readback.openai_agents.tool(destination="orders", kind="order", key=["order_id"], operation="charge:{order_id}")
    def charge_card(order_id: str, amount_cents: int, currency: str = "EUR") -> None:
        \"""Charges for an order.\"""

    agent = Agent(..., tools=[charge_card], tool_use_behavior=readback.openai_agents.stop_for_reviewer)
"""

from __future__ import annotations

import json
from typing import Any, Callable, List, Optional

from ._client import AsyncClient
from ._tool import asked, shaped


def tool(*, operation: str, client: Optional[AsyncClient] = None, workflow: Optional[Callable[[Any], str]] = None,
         **declaration: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a tool of a function that declares a write; the model gets its outcome.

    operation names the write. workflow gets the ToolContext and names the run:
    lambda c: c.context.run_id. The SDK's own needs_approval is asked before the write.
    """
    def decorate(function: Callable[..., Any]) -> Any:
        from agents import function_tool
        from agents.tool_context import ToolContext

        ask = asked(function, client, workflow, operation=operation, **declaration)

        async def call(ctx: Any, *args: Any, **kwargs: Any) -> str:
            return json.dumps((await ask(ctx, *args, **kwargs)).tool_result)

        return function_tool(shaped(call, function, str, ctx=ToolContext[Any]))

    return decorate


def stop_for_reviewer(_: Any, results: List[Any]) -> Any:
    """The tool_use_behavior of an agent whose run ends when a write waits for a reviewer.

    The SDK asks for approvals before a tool runs, and whether a write waits is known only after.
    The final output is the tool's result. Run the agent again, later, with to_input_list().
    """
    from agents import ToolsToFinalOutputResult

    for result in results:
        if isinstance(result.output, str) and result.output.startswith('{"id": "wr_') and json.loads(result.output)["status"] in ("held", "review"):
            return ToolsToFinalOutputResult(is_final_output=True, final_output=result.output)
    return ToolsToFinalOutputResult(is_final_output=False)
