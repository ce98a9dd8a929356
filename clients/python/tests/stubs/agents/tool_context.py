from typing import Generic, TypeVar

T = TypeVar("T")


class RunContextWrapper(Generic[T]):
    def __init__(self, context):
        self.context = context


class ToolContext(RunContextWrapper[T]):
    def __init__(self, context, usage=None, tool_name="", tool_call_id="", tool_arguments=""):
        super().__init__(context)
        self.tool_name, self.tool_call_id, self.tool_arguments = tool_name, tool_call_id, tool_arguments
