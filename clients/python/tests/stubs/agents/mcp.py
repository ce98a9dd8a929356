class MCPServerStdio:
    def __init__(self, *, name, params, client_session_timeout_seconds=5):
        self.params, self.patience = params, client_session_timeout_seconds


class MCPServerStreamableHttp(MCPServerStdio):
    pass
