from contextvars import ContextVar

current = ContextVar("langgraph.config")


def get_config():
    try:
        return current.get()
    except LookupError:
        raise RuntimeError("Called get_config outside of a runnable context") from None
