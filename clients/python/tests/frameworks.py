"""The frameworks, or their stubs where one is not installed."""

import importlib
import importlib.metadata
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent / "stubs"))  # last: what is installed comes first

DISTRIBUTIONS = {"agents": "openai-agents", "crewai": "crewai", "google.adk": "google-adk", "langgraph": "langgraph", "pydantic_ai": "pydantic-ai"}
named = set()


def use(name):
    """Prints, once, whether a framework or its stub is tested."""
    if name in named:
        return
    named.add(name)
    module = importlib.import_module(name)
    try:
        print(f"{name}: {DISTRIBUTIONS[name]} {importlib.metadata.version(DISTRIBUTIONS[name])}", file=sys.stderr)
    except importlib.metadata.PackageNotFoundError:
        print(f"{name}: {module.__doc__.partition(':')[0]}", file=sys.stderr)
