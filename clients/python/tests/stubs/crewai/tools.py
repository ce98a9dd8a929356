from typing import get_type_hints


class Tool:
    def __init__(self, function):
        self.func, self.name, self.description = function, function.__name__, function.__doc__
        self.cache_function = lambda *_: True

    def run(self, **arguments):
        hints = get_type_hints(self.func)
        return self.func(**{name: hints[name](float(value)) if hints[name] is int else value for name, value in arguments.items()})


def tool(function):
    assert function.__doc__, "Function must have a docstring"
    return Tool(function)
