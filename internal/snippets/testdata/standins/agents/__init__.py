"""A stand-in for the OpenAI Agents SDK, as far as the page needs it."""


def function_tool(f):
    return f
