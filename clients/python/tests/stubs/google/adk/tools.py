import inspect
from typing import get_type_hints


class Actions:
    skip_summarization = False


class ToolContext:
    def __init__(self, session, call, confirmation):
        self.session, self.state, self.function_call_id, self.tool_confirmation = session, session.state, call, confirmation
        self.actions, self.requested = Actions(), None

    def request_confirmation(self, *, hint=None, payload=None):
        self.requested = {"hint": hint, "payload": payload, "confirmed": False}


class FunctionTool:
    def __init__(self, func, *, require_confirmation=False):
        self.func, self.name, self.description, self.require_confirmation = func, func.__name__, func.__doc__, require_confirmation

    async def run_async(self, *, args, tool_context):
        if self.require_confirmation and not tool_context.tool_confirmation:
            tool_context.request_confirmation(hint="Please approve or reject the tool call.")
            tool_context.actions.skip_summarization = True
            return {"error": "This tool call requires confirmation, please approve or reject."}
        if self.require_confirmation and not tool_context.tool_confirmation.confirmed:
            return {"error": "This tool call is rejected."}
        hints = get_type_hints(self.func)
        given = {name: hints[name](value) if hints[name] in (int, float) else value for name, value in args.items()}
        of = next((name for name, kind in hints.items() if kind is ToolContext), None)
        got = self.func(**given, **({of: tool_context} if of else {}))
        return await got if inspect.isawaitable(got) else got
