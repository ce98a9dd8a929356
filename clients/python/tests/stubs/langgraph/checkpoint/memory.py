class InMemorySaver:
    def __init__(self):
        self.threads = {}

    def put(self, thread, checkpoint):
        self.threads[thread] = checkpoint
