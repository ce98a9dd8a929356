from dataclasses import dataclass
from typing import Any, Optional


@dataclass
class ResponseFunctionToolCall:
    name: str
    call_id: str
    arguments: str
    type: str = "function_call"
    id: Optional[str] = None


@dataclass
class ResponseOutputText:
    text: str
    annotations: Any
    type: str = "output_text"


@dataclass
class ResponseOutputMessage:
    id: str
    content: Any
    role: str = "assistant"
    status: str = "completed"
    type: str = "message"
