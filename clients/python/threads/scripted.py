"""Models that follow a script, for each framework: they call a tool for each order, and again after an error.

Nothing here is of readback. With the real framework they are its own kinds of model.
"""

import json


class Script:
    """What the model wants next: a call with a new ID, or None. It repeats a call whose result is an error, once."""

    def __init__(self, orders, amount_cents=1999):
        self.orders, self.amount_cents, self.calls, self.results = list(orders), amount_cents, 0, []
        self.begin()

    def begin(self):
        """Begins the task, also a second time."""
        self.left, self.tried = list(self.orders), 0

    def __call__(self, result=None):
        if result is not None:
            self.results.append(str(result))
            self.tried += 1
            if "rror" not in str(result) or self.tried == 2:
                self.left.pop(0)
                self.tried = 0
        if not self.left:
            return None
        self.calls += 1
        return f"call_{self.calls}", {"order_id": self.left[0], "amount_cents": self.amount_cents}


def openai_model(script, tool):
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Scripted(Model):
        async def get_response(self, system_instructions, input, *args, **kwargs):
            last = input[-1] if isinstance(input, list) else {}
            wants = script(last.get("output") if last.get("type") == "function_call_output" else None)
            if wants:
                item = ResponseFunctionToolCall(name=tool, call_id=wants[0], arguments=json.dumps(wants[1]), type="function_call")
            else:
                text = ResponseOutputText(text="done", annotations=[], type="output_text")
                item = ResponseOutputMessage(id="1", content=[text], role="assistant", status="completed", type="message")
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        def stream_response(self, *args, **kwargs):
            raise NotImplementedError

    return Scripted()


def pydantic_model(script, tool):
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages, info):
        part = messages[-1].parts[-1]
        wants = script(part.content if part.part_kind == "tool-return" else "error" if part.part_kind == "retry-prompt" else None)
        return ModelResponse(parts=[ToolCallPart(tool, wants[1], wants[0]) if wants else TextPart("done")])

    return FunctionModel(answer)


def adk_model(script, tool):
    from google.adk.models import BaseLlm, LlmResponse
    from google.genai import types

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            last = llm_request.contents[-1].parts[-1].function_response
            wants = script(json.dumps(last.response) if last else None)
            part = types.Part(function_call=types.FunctionCall(name=tool, args=wants[1], id=wants[0])) if wants else types.Part(text="done")
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    return Scripted(model="scripted")


def crew_model(script, tool):
    from crewai.llms.base_llm import BaseLLM

    class Scripted(BaseLLM):
        def call(self, messages, *args, **kwargs):
            last = messages if isinstance(messages, str) else messages[-1]["content"]
            wants = script(last.split("Observation:")[-1] if "Observation:" in last else None)
            if wants:
                return f"Thought: I must call the tool.\nAction: {tool}\nAction Input: {json.dumps(wants[1])}"
            return "Thought: I now know the final answer\nFinal Answer: done"

    return Scripted(model="scripted")
