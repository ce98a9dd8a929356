"""What is declared, what comes of it, and the errors."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, TypedDict, Union

# The statuses that neither time nor a reviewer's decision changes. A status that is not here,
# such as one of a newer server, has not ended: the cautious reading.
ENDED = frozenset({"verified", "not_applied", "compensated", "accepted", "abandoned", "denied", "expired", "reported"})


class _Required(TypedDict):
    tool: str
    destination: str
    kind: str
    write: str  # create, update, upsert or delete
    key: Mapping[str, Union[str, int, float, bool]]


class Intent(_Required, total=False):
    """A declared write, for those who annotate one. docs/guide/writes.md describes its members."""

    tenant: str
    workflow: str
    step: str
    call: int
    expect: Mapping[str, Any]
    absent: List[str]
    payload: Mapping[str, Any]
    require: Mapping[str, Any]
    ignore: List[str]
    compare: Mapping[str, Any]
    count: int
    risk: str
    reversibility: str
    on_mismatch: str
    deadline: str
    idempotency_key: str
    correlation_id: str
    sensitive: List[str]
    context: Mapping[str, str]


class ToolResult(TypedDict):
    """What a model gets as the result of its tool call: never an exception, which it would try to work around."""

    id: str  # empty if no write is known
    verified: bool
    status: str
    what_to_do: str


class Outcome:
    """What became of a write. Only verified means that a later read found what was declared."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data: Dict[str, Any] = dict(data)  # as the server sent it
        self.id: str = self.data["id"]
        self.status: str = self.data["status"]
        self.text: str = self.data.get("text", "")  # for people
        self.for_model: str = self.data.get("for_model", "")
        self.ref: Optional[str] = self.data.get("ref")  # the record at the destination
        self.replayed: bool = self.data.get("replayed", False)  # an earlier call began this write
        self.verified = self.status == "verified"
        self.done = self.status in ENDED
        self.waits_for_reviewer = self.status in ("held", "review")
        self.final = self.done and "recheck_until" not in self.data  # no recheck can change it

    def require(self) -> Outcome:
        """Returns the outcome if it is verified, else raises NotVerified."""
        if not self.verified:
            raise NotVerified(self)
        return self

    @property
    def tool_result(self) -> ToolResult:
        return {"id": self.id, "verified": self.verified, "status": self.status, "what_to_do": self.for_model}

    def __repr__(self) -> str:
        return f"<Outcome {self.id} {self.status}: {self.text}>"


class Error(Exception):
    """Every error of a write. tool_result is it for a model, as that of an outcome."""

    tool_result: ToolResult


class Refused(Error):
    """The request must change, or a reviewer must help. problem is the problem document.

    It is no statement about an earlier call whose response was lost.
    """

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(problem.get("detail") or problem.get("title") or "refused")
        self.problem: Dict[str, Any] = dict(problem)
        self.tool_result = {"id": problem.get("id", ""), "verified": False, "status": "refused",
                            "what_to_do": f"Refused: {str(self).rstrip('.')}. Do not do it in another way."}


class NotKnown(Error, TimeoutError):
    """No response in time. Whether the request was recorded is not known: only repeat it, later."""

    def __init__(self, reason: str, advice: str = "repeat the same call later") -> None:
        super().__init__(f"no outcome in time; {advice} ({reason})")
        self.tool_result = {"id": "", "verified": False, "status": "not_known",
                            "what_to_do": "It is not known whether this was done. Do not do it in another way. "
                                          "A call with exactly the same arguments is safe."}


class NotVerified(Error):
    """The outcome is known and is not verified."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"{outcome.id} is {outcome.status}: {outcome.text}")
        self.outcome = outcome
        self.tool_result = outcome.tool_result
