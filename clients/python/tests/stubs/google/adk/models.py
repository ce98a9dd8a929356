from dataclasses import dataclass
from typing import Any


class BaseLlm:
    def __init__(self, model):
        self.model = model


@dataclass
class LlmRequest:
    contents: Any


@dataclass
class LlmResponse:
    content: Any
