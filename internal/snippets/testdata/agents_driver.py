"""Calls the tool of the page (page.py) as the OpenAI Agents SDK would."""

import asyncio, json, sys
from agents.tool_context import ToolContext
from page import agent

order, (charge_card,) = sys.argv[1], agent.tools
for run, call, cents in [("run-1", "call_a", 1999), ("run-1", "call_b", 1999), ("run-2", "call_c", 1999), ("run-2", "call_d", 2999)]:
    given = json.dumps({"order_id": order, "amount_cents": cents})
    print(asyncio.run(charge_card.on_invoke_tool(ToolContext(run, tool_name="charge_card", tool_call_id=call, tool_arguments=given), given)))
