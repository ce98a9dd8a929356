"""For CrewAI (crewai).

    @readback.crewai.tool(destination="orders", kind="order", key=["order_id"], operation="charge:{order_id}")
    def charge_card(order_id: str, amount_cents: int, currency: str = "EUR") -> None:
        \"""Charges for an order.\"""

    agent = Agent(..., tools=[charge_card])
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from ._client import Client
from ._outcome import Outcome
from ._tool import late, results, shaped, within


def tool(*, destination: str, kind: str, key: Sequence[str], operation: str, write: str = "create", client: Optional[Client] = None,
         **members: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a function a tool that declares a write, as Client.verified does; the model gets its outcome.

    operation names the write, for ever: CrewAI gives a tool neither the ID of the call nor that of
    the run. CrewAI cannot interrupt a tool: while a reviewer decides, the result instructs the
    model to wait.
    """
    members.update(destination=destination, kind=kind, key=key, operation=operation, write=write)

    def decorate(function: Callable[..., Any]) -> Any:
        from crewai.tools import tool as crewai_tool

        get = late(client, Client, function, members)

        def ask(*args: Any, **kwargs: Any) -> Outcome:
            with within(None):
                outcome: Outcome = get().verified(**members)(function)(*args, **kwargs)
                return outcome

        made = crewai_tool(shaped(results(ask), function, str))
        made.cache_function = lambda *_: False  # a write in progress has another outcome later
        return made

    return decorate
