class StructuredTool:
    def __init__(self, function):
        self.func, self.name, self.description = function, function.__name__, function.__doc__

    def invoke(self, arguments):
        return self.func(**arguments)


def tool(function):
    return StructuredTool(function)
