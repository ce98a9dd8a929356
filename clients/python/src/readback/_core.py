"""What both clients do, without a connection: generators that yield what must happen next.

A generator yields a Request and gets an Answer, or the reason why there was none; yields seconds
and continues after them; yields Line and gets a line of a stream, or None at its end; yields an
awaitable and gets its result. It yields a Result for the caller.
"""

from __future__ import annotations

import inspect
import json
import os
import random
import ssl
import time
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from typing import (TYPE_CHECKING, AbstractSet, Any, Callable, Dict, Generator, Generic, Iterable, Iterator, Mapping, MutableMapping, Optional,
                    Sequence, TypeVar, Union)
from urllib.parse import quote, urlencode, urlsplit
from weakref import WeakKeyDictionary

from ._outcome import NotKnown, Outcome, Refused
from ._place import Place, current, declares, identified, within

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")
O = TypeVar("O")
Os = TypeVar("Os")
Ws = TypeVar("Ws")

# Seconds that a request waits at the server: proxies often end one without a byte after 60.
WAIT = 30
# The server sends a line of a stream every 15 s: without one for so long the connection is dead.
SILENCE = 45
# The response of a server that waited must still arrive.
SLACK = 5
# How many ids the server takes in one request.
BATCH = 100
# What every outcome has.
OUTCOME = frozenset({"id", "status"})


@dataclass
class Request:
    method: str
    path: str
    left: float  # seconds of the caller's patience
    timeout: float
    headers: Dict[str, str]
    body: Optional[bytes] = None
    stream: bool = False


@dataclass
class Answer:
    status: int
    headers: Message
    body: bytes = b""
    lines: Any = None  # of a stream, as the client reads them
    close: Callable[[], object] = lambda: None


@dataclass
class Line:
    stream: Answer
    timeout: float


@dataclass
class Result:
    value: Any


Steps = Generator[Any, Any, T]


class Core(Generic[O, Os, Ws]):
    """The methods of both clients. O is an outcome or an awaitable of one, Os and Ws are iterators."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, timeout: float = 60, patience: float = 300) -> None:
        token = (os.environ.get("READBACK_TOKEN", "") if token is None else token).strip()
        parts = urlsplit(os.environ.get("READBACK_URL", "") if url is None else url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("url: set READBACK_URL, or give the address of the server, such as https://readback.example.org")
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError("token: it has characters that no token has")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host, self._port, self._prefix = parts.hostname, parts.port or (443 if self._tls else 80), parts.path.rstrip("/")
        self._headers = {"Host": parts.netloc, "Accept": "application/json, text/event-stream", "Connection": "close"}
        if token:
            self._headers["Authorization"] = "Bearer " + token
        self._timeout, self._patience = timeout, patience
        self._turns: MutableMapping[Any, Any] = WeakKeyDictionary()  # of each event loop, as some clients need them

    def write(self, intent: Mapping[str, Any], patience: Optional[float] = None) -> O:
        """Declares a write, and returns its outcome, or the one so far after patience seconds.

        A repeat with the same intent is safe at any time. Raises Refused, and NotKnown if nothing
        is known: then only make the same call again, later.
        """
        return self._run(self._write(intent, patience))

    def get(self, id: str, wait: float = 0, final: bool = False) -> O:
        """Returns the outcome of a write, after waiting for its end for wait seconds; with final, for its rechecks too."""
        return self._run(self._get(id, wait, final))

    def decide(self, id: str, decision: str, reason: str, seq: Optional[int] = None, digest: Optional[str] = None) -> O:
        """Decides about a write, with a reviewer's token. seq and digest are those that the reviewer read.

        It is sent once. After NotKnown, get the write before another decision.
        """
        return self._run(self._decide(id, {"word": decision, "reason": reason, "seq": seq, "digest": digest}))

    def writes(self, **filter: Any) -> Ws:
        """Finds writes, newest first, as the parameters of GET /v1/writes narrow them.

        Raises RuntimeError after a page from which writes are missing that the server cannot read.
        """
        return self._iterate(self._writes(filter))  # type: ignore[no-any-return]

    def outcomes(self, ids: Iterable[str], patience: Optional[float] = None) -> Os:
        """Yields the outcome of each write when it ends, and after patience seconds the others as they are."""
        return self._iterate(self._outcomes(ids, patience))  # type: ignore[no-any-return]

    def verified(self, *, destination: str, kind: str, key: Sequence[str], write: str = "create",
                 operation: Optional[str] = None, **members: Any) -> Callable[[Callable[P, Any]], Callable[P, O]]:
        """Makes a function declare a write. Its name is the tool; workflow and step come from the context.

        key names the parameters of the business key. The others are expected, or what the function
        returns. operation names the business operation: "charge:{order_id}".
        """
        members.update(destination=destination, kind=kind, key=key, write=write, operation=operation)

        def decorate(function: Callable[P, Any]) -> Callable[P, O]:
            declare = declares(function, **members)
            return self._wrap(function, lambda *args, **kwargs: self._run(self._declare(declare, function, args, kwargs)))

        return decorate

    @contextmanager
    def workflow(self, name: str) -> Iterator[Place[O]]:
        """Names the run, for the writes within. The name must be the same when the run is started again."""
        with within(Place(self._at, name)) as place:
            yield place

    @contextmanager
    def step(self, name: str) -> Iterator[Place[O]]:
        """Names the step of the current workflow, for the writes within, and counts its calls."""
        outer = current.get()
        if outer is None or outer.step is not None:  # the name of the outer step would be lost
            raise ValueError("a step needs a workflow, `with client.workflow(name):`, and is in no other step")
        with within(Place(self._at, outer.workflow, name)) as place:
            yield place

    def _at(self, intent: Mapping[str, Any], place: Place[O]) -> O:
        return self._run(self._write(intent, None, place))

    def _run(self, steps: Steps[None]) -> O:
        """Returns the one result of the steps."""
        raise NotImplementedError

    def _iterate(self, steps: Steps[None]) -> Any:
        """Yields the results of the steps."""
        raise NotImplementedError

    def _wrap(self, function: Callable[..., Any], call: Callable[..., O]) -> Callable[..., O]:
        """Makes call look like function."""
        raise NotImplementedError

    def _end(self, patience: Optional[float]) -> float:
        return time.monotonic() + (self._patience if patience is None else patience)

    def _request(self, method: str, path: str, end: float, body: Optional[bytes] = None, wait: float = 0,
                 final: bool = False, headers: Optional[Dict[str, str]] = None, stream: bool = False) -> Request:
        left = max(0.0, end - time.monotonic())
        prefer = f"wait={int(min(wait, left, self._timeout / 2))}" + ", final" * final
        named = {**self._headers, "Prefer": prefer, **(headers or {})}
        if body is not None:
            named["Content-Type"] = "application/json"
        return Request(method, self._prefix + path, left, min(self._timeout, left + SLACK), named, body, stream)

    def _exchange(self, has: AbstractSet[str], method: str, path: str, end: float, **more: Any) -> Steps[Dict[str, Any]]:
        """Repeats a request until its answer has these members."""
        pause, first = 0.5, True
        while True:
            answer, again = (yield self._request(method, path, end, **more)), ""
            if isinstance(answer, Answer):
                data = parsed(answer.body)
                try:
                    found = data if answer.status < 300 else refused(answer)
                except Refused:
                    if first or method == "GET" or answer.status in (400, 409, 422):
                        raise
                    found, end = {}, 0.0  # it says nothing about an earlier request
                if has <= found.keys():
                    return found
                again = answer.headers.get("Retry-After", "")
                delay = max(float(again), 0.1) if again.isdecimal() else 5.0
                answer = f"{answer.status} {data.get('detail') or data.get('title') or 'not from readback'}"
            else:
                delay = pause = min(2 * pause, 30)
            delay *= 1 + random.random() / 2  # callers that failed together do not return together
            left, first = end - time.monotonic(), False
            if left <= 0 or again and delay > left:
                raise NotKnown(answer)
            yield min(delay, left)

    def _outcome(self, ended: Callable[[Outcome], bool], end: float, until: float, method: str, path: str, **more: Any) -> Steps[Outcome]:
        """Repeats a request until its outcome has ended, and returns the last one; the first has time until end."""
        outcome = None
        while True:
            try:
                wait = min(WAIT, until - time.monotonic())
                outcome = Outcome((yield from self._exchange(OUTCOME, method, path, until if outcome else end, wait=wait, **more)))
            except (NotKnown, Refused):
                if outcome is None:
                    raise
                return outcome
            if ended(outcome) or time.monotonic() + 1 > until:
                return outcome
            yield 1.0

    def _write(self, intent: Mapping[str, Any], patience: Optional[float] = None, place: Optional[Place[Any]] = None) -> Steps[None]:
        intent, unended = identified(intent, place)
        end, outcome, problem = self._end(patience), None, {}
        try:
            body = json.dumps(intent, allow_nan=False).encode()
            outcome = yield from self._outcome(lambda o: o.status != "in_progress", end, end, "POST", "/v1/writes", body=body)
            yield Result(outcome)
        except Refused as e:
            problem = e.problem
            raise
        finally:
            if outcome is None or not outcome.done:
                unended(problem)

    def _declare(self, declare: Callable[..., Dict[str, Any]], function: Callable[..., Any], args: Any, kwargs: Any) -> Steps[None]:
        expect = function(*args, **kwargs)
        if inspect.isawaitable(expect):
            expect = yield expect
        yield from self._write(declare(expect, *args, **kwargs))

    def _get(self, id: str, wait: float, final: bool) -> Steps[None]:
        ended = self._outcome(lambda o: o.final if final else o.done, self._end(None), self._end(wait), "GET", of(id), final=final)
        yield Result((yield from ended))

    def _decide(self, id: str, decision: Mapping[str, Any]) -> Steps[None]:
        body = json.dumps({name: value for name, value in decision.items() if value is not None}).encode()
        # A repeat could decide about a later review of the same write.
        answer = yield self._request("POST", of(id) + "/decision", self._end(None), body, WAIT)
        data: Dict[str, Any] = {}
        if isinstance(answer, Answer):
            data = parsed(answer.body) if answer.status < 300 else refused(answer, once=True)
        if not OUTCOME <= data.keys():
            raise NotKnown(str(answer.status if isinstance(answer, Answer) else answer), "the decision may be recorded: get the write")
        yield Result(Outcome(data))

    def _writes(self, filter: Mapping[str, Any]) -> Steps[None]:
        query = {name: value if isinstance(value, (str, list, tuple)) else json.dumps(value)
                 for name, value in filter.items() if value is not None}
        while True:
            page = yield from self._exchange({"writes"}, "GET", "/v1/writes?" + urlencode(query, doseq=True), self._end(None))
            yield from map(Result, page["writes"])
            if page.get("unread"):
                raise RuntimeError("the server cannot read " + ", ".join(f"{w['id']}: {w['reason']}" for w in page["unread"]))
            if not page.get("next"):
                return
            query["after"] = page["next"]

    def _outcomes(self, ids: Iterable[str], patience: Optional[float]) -> Steps[None]:
        end, last, pause = self._end(patience), "", 0.5
        waiting: Dict[str, Optional[Outcome]] = dict.fromkeys(ids)
        while waiting and time.monotonic() < end:
            stream = yield self._request("GET", "/v1/events", end, headers={"Last-Event-ID": last} if last else {}, stream=True)
            if isinstance(stream, Answer) and stream.status == 200:
                pause = 0.5
                try:
                    if not last:  # what ended before the stream began
                        yield from self._read(waiting, end)
                    if None not in waiting.values():
                        last = yield from self._follow(stream, waiting, last, end)
                finally:
                    stream.close()
            elif isinstance(stream, Answer):
                refused(stream)
            pause = min(2 * pause, 30)
            if waiting:
                yield min(pause * (1 + random.random() / 2), max(0.0, end - time.monotonic()))
        if None in waiting.values():
            yield from self._read(waiting, end)
        for outcome in waiting.values():
            if outcome is None:
                raise NotKnown("the server has reached a limit")
            yield Result(outcome)

    def _read(self, waiting: Dict[str, Optional[Outcome]], end: float) -> Steps[None]:
        """Reads the outcome of each write: None where the server has reached a limit."""
        ids = list(waiting)
        waiting.update(dict.fromkeys(ids))
        for i in range(0, len(ids), BATCH):
            query = urlencode([("id", id) for id in ids[i:i + BATCH]])
            for result in (yield from self._exchange({"results"}, "GET", "/v1/writes/batch?" + query, end))["results"]:
                if "outcome" in result:
                    yield from settle(waiting, Outcome(result["outcome"]))
                elif not result.get("retry_after"):
                    raise Refused(result["problem"])

    def _follow(self, stream: Answer, waiting: Dict[str, Optional[Outcome]], last: str, end: float) -> Steps[str]:
        """Returns the id of the last event; none if events were missed."""
        event: Dict[str, str] = {}
        while waiting and time.monotonic() < end:
            line = yield Line(stream, min(SILENCE, max(0.001, end - time.monotonic())))
            if line is None:
                break
            name, _, value = line.decode(errors="replace").rstrip("\r\n").partition(": ")
            event[name] = value
            if not line.strip():
                last = event.get("id", last)
                if event.get("event") == "missed":
                    return ""
                outcome = parsed(event.get("data", "")).get("outcome")
                if outcome and outcome["id"] in waiting:
                    yield from settle(waiting, Outcome(outcome))
                event = {}
        return last


def settle(waiting: Dict[str, Optional[Outcome]], outcome: Outcome) -> Steps[None]:
    waiting[outcome.id] = outcome
    if outcome.done:
        del waiting[outcome.id]
        yield Result(outcome)


def parsed(text: Union[str, bytes]) -> Dict[str, Any]:
    """The object in a text; without one, none of readback's, it is empty."""
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    return data if isinstance(data, dict) else {}


def refused(answer: Answer, once: bool = False) -> Dict[str, Any]:
    """Raises Refused if a repeat does not help, or is not allowed. Returns the outcome of the same operation, if any."""
    problem = parsed(answer.body) or {"title": f"{answer.status}, not from readback"}
    outcome: Dict[str, Any] = problem.get("outcome") or {}
    if outcome and problem.get("recorded_digest") and problem["recorded_digest"] == problem.get("received_digest"):
        return outcome
    later = answer.headers.get("Retry-After") or answer.status == 429
    if answer.status < 500 and answer.status != 408 and (once or not later):
        raise Refused(problem)
    return {}


def of(id: str) -> str:
    return "/v1/writes/" + quote(id, safe="")
