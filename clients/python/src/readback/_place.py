"""The place of a write in the program: workflow, step and call."""

from __future__ import annotations

import inspect
import json
import os
import string
import threading
from collections import defaultdict
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Callable, Dict, Generic, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar

T = TypeVar("T")


class Place(Generic[T]):
    """A step of a workflow, or a workflow without steps. It counts the calls of each tool.

    Entered again, as after a restart, it counts from 0: the same calls are the same writes. A call
    that did not end (an exception, a cancellation, a write in progress or in review) keeps its
    number for the next call with the same content. So a repeat within the step is the same write.
    It does not count the calls of another thread or process, nor those after a call that had other
    content in an earlier run: a write that was made could get another number.
    """

    def __init__(self, write: Callable[[Mapping[str, Any], Place[T]], T], workflow: str, step: Optional[str] = None) -> None:
        if not workflow or step == "":
            raise ValueError("workflow and step need a name")
        self.workflow, self.step, self._write = workflow, step, write
        self._counts: Dict[str, int] = defaultdict(int)
        self._open: Dict[str, List[int]] = {}
        self._runner, self._changed = (os.getpid(), threading.get_ident()), False

    def write(self, intent: Mapping[str, Any]) -> T:
        """Declares a write at this place."""
        return self._write(intent, self)

    def take(self, intent: Mapping[str, Any]) -> Tuple[Dict[str, Any], Callable[[Mapping[str, Any]], None]]:
        """Adds workflow, step and call, and returns what to call with the problem, if any, of a call that did not end."""
        named = dict(intent, workflow=self.workflow)
        if self.step is not None:
            named.setdefault("step", self.step)
        if "call" in named:
            return named, lambda _: None
        if self._changed or self._runner != (os.getpid(), threading.get_ident()):
            raise ValueError("calls of several threads or processes, or after one that was another in an earlier run, have no fixed order: "
                             "give each its own call. Nothing was sent")
        same = json.dumps(named, sort_keys=True)
        counted = json.dumps([named.get("step"), named.get("tool")])
        if self._open.get(same):
            call = self._open[same].pop(0)
        else:
            call = self._counts[counted]
            self._counts[counted] += 1

        def unended(problem: Mapping[str, Any]) -> None:
            self._open.setdefault(same, []).append(call)
            self._changed |= problem.get("type", "").endswith("/digest-mismatch")

        return dict(named, call=call), unended


current: ContextVar[Optional[Place[Any]]] = ContextVar("readback.place", default=None)

At = TypeVar("At", bound=Optional[Place[Any]])


@contextmanager
def within(place: At) -> Iterator[At]:
    """Names the writes within by a place. Without one, each is named by its operation alone."""
    token = current.set(place)
    try:
        yield place
    finally:
        current.reset(token)


def identified(intent: Mapping[str, Any], place: Optional[Place[Any]]) -> Tuple[Dict[str, Any], Callable[[Mapping[str, Any]], None]]:
    """Names a write by its place, or the current one, if it does not name itself. A name is never invented."""
    if intent.get("workflow"):
        return dict(intent), lambda _: None
    place = place or current.get()
    if place:
        return place.take(intent)
    key = intent.get("idempotency_key")
    if not key or intent.get("step"):
        raise ValueError("the write has no name: give it a workflow, or an idempotency_key and no step, "
                         "or call it within `with client.workflow(name):`. Nothing was sent")
    if not key.isascii() or not key.isprintable():
        raise ValueError("idempotency_key: want printable ASCII characters")
    return dict(intent, workflow="http", step=key), lambda _: None  # what the header Idempotency-Key would name it


def declares(function: Callable[..., Any], *, destination: str, kind: str, key: Sequence[str], write: str = "create",
             operation: Optional[str] = None, **members: Any) -> Callable[..., Dict[str, Any]]:
    """Returns what makes an intent of a function's arguments, and of what the function returned."""
    members = {"tool": function.__name__, "destination": destination, "kind": kind, "write": write, **members}
    signature = inspect.signature(function)
    named = [name.split(".")[0].split("[")[0] for _, name, _, _ in string.Formatter().parse(operation or "") if name is not None]
    missing = [name for name in [*key, *named] if name not in signature.parameters]
    if missing or not key:
        raise ValueError(f"key and operation: {missing or 'no key'}; want parameters of {function.__name__}")

    def declare(expect: Optional[Mapping[str, Any]], *args: Any, **kwargs: Any) -> Dict[str, Any]:
        if not (expect is None or isinstance(expect, Mapping)):
            raise TypeError(f"{function.__name__} returned {type(expect).__name__}; want None or what is expected. "
                            "A function that declares a write must not make it")
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if expect is None:
            expect = {name: value for name, value in given.items() if name not in key}
        intent: Dict[str, Any] = dict(members, key={name: given[name] for name in key})
        if expect:
            intent["expect"] = dict(expect)
        if operation is not None:
            intent["idempotency_key"] = operation.format(**given)
        return intent

    return declare
