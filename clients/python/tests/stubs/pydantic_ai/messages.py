from dataclasses import dataclass
from typing import Any, List


@dataclass
class TextPart:
    content: str
    part_kind: str = "text"


@dataclass
class ToolCallPart:
    tool_name: str
    args: Any
    tool_call_id: str
    part_kind: str = "tool-call"


@dataclass
class UserPromptPart:
    content: str
    part_kind: str = "user-prompt"


@dataclass
class ToolReturnPart:
    tool_name: str
    content: Any
    tool_call_id: str
    part_kind: str = "tool-return"


@dataclass
class RetryPromptPart:
    content: str
    tool_name: str
    tool_call_id: str
    part_kind: str = "retry-prompt"


@dataclass
class ModelRequest:
    parts: List[Any]


@dataclass
class ModelResponse:
    parts: List[Any]
