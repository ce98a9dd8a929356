class FunctionModel:
    def __init__(self, function):
        self.function = function
