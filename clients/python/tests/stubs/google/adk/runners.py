import asyncio
import inspect

from google.adk.models import LlmRequest
from google.adk.tools import ToolContext
from google.genai import types

CONFIRMATION = "adk_request_confirmation"


class Session:
    def __init__(self, id, state):
        self.id, self.state, self.contents = id, dict(state or {}), []


class Sessions:
    def __init__(self):
        self.all = {}

    async def create_session(self, *, app_name, user_id, state=None, session_id=None):
        session = Session(session_id or f"session-{len(self.all)}", state)
        self.all[session.id] = session
        return session


class Event:
    def __init__(self, author, content):
        self.author, self.content = author, content

    def get_function_calls(self):
        return [part.function_call for part in self.content.parts if part.function_call]

    def get_function_responses(self):
        return [part.function_response for part in self.content.parts if part.function_response]


class Confirmation:
    def __init__(self, confirmed):
        self.confirmed = confirmed


class InMemoryRunner:
    def __init__(self, agent, *, app_name="InMemoryRunner"):
        self.agent, self.app_name, self.session_service = agent, app_name, Sessions()

    async def run_async(self, *, user_id, session_id, new_message):
        session = self.session_service.all[session_id]
        session.contents.append(new_message)
        confirmed = [part.function_response for part in new_message.parts if part.function_response]
        while True:
            if confirmed:  # the original calls are made again
                asked = {part.function_call.id: part.function_call for c in session.contents for part in c.parts if part.function_call}
                todo = [(asked[asked[r.id].args["originalFunctionCall"]["id"]], Confirmation(r.response["confirmed"])) for r in confirmed]
                confirmed = []
            else:
                async for response in self.agent.model.generate_content_async(LlmRequest(list(session.contents))):
                    pass
                yield self.added(session, response.content)
                todo = [(part.function_call, None) for part in response.content.parts if part.function_call]
                if not todo:
                    return
            done = await asyncio.gather(*(self.called(session, call, confirmation) for call, confirmation in todo))
            requests = [types.Part(function_call=types.FunctionCall(CONFIRMATION, {
                "originalFunctionCall": {"id": call.id, "name": call.name, "args": call.args}, "toolConfirmation": context.requested}, "adk-" + call.id))
                for (call, _), (_, context) in zip(todo, done) if context.requested]
            if requests:
                yield self.added(session, types.Content("model", requests))
            yield self.added(session, types.Content("user", [types.Part(function_response=types.FunctionResponse(call.name, got, call.id))
                                                             for (call, _), (got, _) in zip(todo, done)]))
            if any(context.actions.skip_summarization for _, context in done):
                return

    def added(self, session, content):
        session.contents.append(content)
        return Event(self.agent.name, content)

    async def called(self, session, call, confirmation):
        agent, context = self.agent, ToolContext(session, call.id, confirmation)
        tool, got = agent.tools[call.name], None
        if agent.before:
            got = agent.before(tool=tool, args=call.args, tool_context=context)
        if got is None:
            got = await tool.run_async(args=call.args, tool_context=context)
        if agent.after:
            changed = agent.after(tool=tool, args=call.args, tool_context=context, tool_response=got)
            got = changed if changed is not None else got
        return (await got if inspect.isawaitable(got) else got), context
