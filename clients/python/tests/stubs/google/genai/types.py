from dataclasses import dataclass
from typing import Any, List, Optional


@dataclass
class FunctionCall:
    name: str
    args: Any
    id: Optional[str] = None


@dataclass
class FunctionResponse:
    name: str
    response: Any
    id: Optional[str] = None


@dataclass
class Part:
    text: Optional[str] = None
    function_call: Optional[FunctionCall] = None
    function_response: Optional[FunctionResponse] = None


@dataclass
class Content:
    role: str
    parts: List[Part]
