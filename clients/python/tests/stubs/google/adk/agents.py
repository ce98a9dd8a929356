from google.adk.tools import FunctionTool


class Agent:
    def __init__(self, *, name, model, tools=(), before_tool_callback=None, after_tool_callback=None):
        self.name, self.model, self.before, self.after = name, model, before_tool_callback, after_tool_callback
        self.tools = {t.name: t for t in (t if isinstance(t, FunctionTool) else FunctionTool(t) for t in tools)}
