"""What the modules for agent frameworks share: a function whose calls are a model's."""

from __future__ import annotations

import functools
import inspect
import json
from contextlib import closing
from typing import Any, Awaitable, Callable, Dict, Mapping, Optional, Union, get_type_hints

from ._client import AsyncClient
from ._core import Result, Steps
from ._outcome import Error, Outcome, Refused
from ._place import Place, declares, within

Answer = Union[Outcome, Error]


def late(client: Any, kind: Any, function: Callable[..., Any], declaration: Mapping[str, Any]) -> Callable[[], Any]:
    """Returns what returns the client: the given one, or one from the environment, made at the first call.

    A wrong declaration raises now, and not in a model's loop.
    """
    declares(function, **declaration)
    made = functools.lru_cache(None)(kind)
    return lambda: client or made()


def asked(function: Callable[..., Any], client: Optional[AsyncClient], workflow: Optional[Callable[[Any], str]],
          **declaration: Any) -> Callable[..., Awaitable[Answer]]:
    """Returns what declares the write of a call. It returns the outcome or the error, which a model gets as a result.

    The workflow and the operation name the write, or the operation alone; never a count or the ID
    of a call: a model's calls come in no fixed order, and a call that it repeats has another ID.
    """
    get = late(client, AsyncClient, function, declaration)
    declare = declares(function, **declaration)

    async def ask(context: Any, *args: Any, **kwargs: Any) -> Answer:
        try:
            step = declare(None, *args, **kwargs)["idempotency_key"]
            with within(Place(get()._at, workflow(context), step) if workflow else None):
                outcome: Outcome = await get()._run(get()._declare(declare, function, args, kwargs))
                return outcome
        except (Error, ValueError) as e:
            return failed(e)

    return ask


def ends(client: Any, place: Optional[Place[Any]], interrupt: Callable[[Any], Any], function: Callable[..., Any],
         declaration: Mapping[str, Any], args: Any, kwargs: Any) -> Steps[None]:
    """Declares the write of a call at a place, and again after each interrupt, until no reviewer must decide.

    Raises NotVerified unless it is verified: a program that ignored the outcome would continue.
    """
    declare = declares(function, **declaration)
    while True:
        with closing(client._declare(declare, function, args, kwargs)) as steps, within(place):
            step = next(steps)
            while not isinstance(step, Result):
                result = yield step
                step = steps.send(result)
        if not waits(step.value):
            yield Result(step.value.require())
            return
        interrupt(waits(step.value))


def results(ask: Callable[..., Outcome]) -> Callable[..., str]:
    """Makes what returns an outcome, or raises an error of a write, return the result of a tool."""
    def call(*args: Any, **kwargs: Any) -> str:
        try:
            return json.dumps(ask(*args, **kwargs).tool_result)
        except (Error, ValueError) as e:
            return json.dumps(failed(e).tool_result)

    return call


def failed(e: Exception) -> Error:
    """The error of a write. A ValueError is about a value of the model that no request can have: nothing was sent."""
    return e if isinstance(e, Error) else Refused({"title": str(e)})


def waits(answer: Answer) -> Optional[Dict[str, Any]]:
    """What an interrupt shows to a person if the write waits for a reviewer."""
    if isinstance(answer, Outcome) and answer.waits_for_reviewer:
        return {"write": answer.id, "status": answer.status, "why": answer.text}
    return None


def shaped(call: Callable[..., Any], function: Callable[..., Any], returns: Any, **context: Any) -> Callable[..., Any]:
    """Gives call the name, the text and the parameters of function, after that of the context. Frameworks read them."""
    hints = get_type_hints(function, include_extras=True)
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind) for name, kind in context.items()]
    parameters += [p.replace(annotation=hints.get(p.name, Any)) for p in inspect.signature(function).parameters.values()]
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(call, name, getattr(function, name))
    call.__annotations__ = {**{p.name: p.annotation for p in parameters}, "return": returns}
    setattr(call, "__signature__", inspect.Signature(parameters, return_annotation=returns))
    return call
