"""Calls the tool of the page (page.py) as the OpenAI Agents SDK would."""

import asyncio, sys
from agents.tool_context import ToolContext
from page import Run, charge_card

order = sys.argv[1]
for run, call, cents in [("run-1", "call_a", 1999), ("run-1", "call_b", 1999), ("run-2", "call_c", 1999), ("run-2", "call_d", 2999)]:
    print(asyncio.run(charge_card(ToolContext(Run(run), call), order, cents)))
