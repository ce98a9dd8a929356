"""What a typed program writes: mypy --strict and pyright must accept it, and refuse the marked lines."""

from typing import Dict, List

import readback

INTENT: readback.Intent = {
    "workflow": "run", "step": "charge", "tool": "charge_card", "destination": "orders", "kind": "order", "write": "create",
    "key": {"order_id": "A-1"}, "expect": {"amount_cents": 1999}}
plain: Dict[str, object] = {"workflow": "run"}


def with_threads() -> List[str]:
    with readback.Client("http://127.0.0.1:8080", "rbk_1") as rb:
        outcome: readback.Outcome = rb.write(INTENT, patience=3)
        rb.write(plain)
        rb.write({"workflow": "run", "key": {"order_id": "A-1"}})

        @rb.verified(destination="orders", kind="order", key=["order_id"])
        def charge(order_id: str, cents: int) -> None: ...

        with rb.workflow("run"), rb.step("charge") as step:
            done: readback.Outcome = charge("A-1", cents=1)
            step.write(INTENT).require()
            charge("A-1", cents="1")  # refused
        rb.write("A-1")  # refused
        outcome.verfied  # refused
        return [o.id for o in rb.outcomes([outcome.id, done.id])] + [str(w["id"]) for w in rb.writes(status="review")]


async def with_asyncio() -> List[str]:
    async with readback.AsyncClient() as rb:
        outcome: readback.Outcome = await rb.write(INTENT)

        @rb.verified(destination="orders", kind="order", key=["order_id"])
        async def charge(order_id: str, cents: int) -> None: ...

        with rb.workflow("run"), rb.step("charge") as step:
            (await charge("A-1", 1)).require()
            (await step.write(INTENT)).require()
            charge("A-1", 1).require()  # refused
        result: readback.ToolResult = (await rb.get(outcome.id, wait=1, final=True)).tool_result
        return [result["status"]] + [o.id async for o in rb.outcomes([outcome.id])] + [str(w["id"]) async for w in rb.writes()]
