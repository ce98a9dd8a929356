class BaseLLM:
    def __init__(self, model):
        self.model = model
