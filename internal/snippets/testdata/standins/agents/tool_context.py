from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass
class ToolContext(Generic[T]):
    context: Any
    tool_call_id: str
