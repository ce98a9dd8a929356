"""The clients: how a request is sent, with sockets and with asyncio."""

from __future__ import annotations

import asyncio
import functools
import http.client
import inspect
import io
import time
from contextlib import ExitStack, closing
from email.message import Message
from typing import Any, AsyncGenerator, AsyncIterator, Callable, Coroutine, Dict, Generator, Iterator, Optional, TypeVar, Union

from ._core import SLACK, Answer, Core, Line, Request, Result, Steps
from ._outcome import Outcome

T = TypeVar("T")

# How many requests an AsyncClient has open at once: fewer than the files that a process may open
# on every system. The others wait for their turn.
OPEN = 100


class Client(Core[Outcome, Iterator[Outcome], Iterator[Dict[str, Any]]]):
    """A client of a server, for programs with or without threads.

    url and token default to READBACK_URL and READBACK_TOKEN. timeout is how many seconds one
    request may take, patience how many a call may. No proxy is used, and no redirect followed.
    """

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass  # each request has a connection of its own

    def _wrap(self, function: Callable[..., Any], call: Callable[..., Outcome]) -> Callable[..., Outcome]:
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{function.__name__} is async: use an AsyncClient")
        return functools.wraps(function)(call)

    def _run(self, steps: Steps[None]) -> Outcome:
        with closing(self._iterate(steps)) as results:
            outcome: Outcome = next(results)
            return outcome

    def _iterate(self, steps: Steps[None]) -> Generator[Any, None, None]:
        result = None
        try:
            while True:
                step = steps.send(result)
                if isinstance(step, Result):
                    result = None
                    yield step.value
                else:
                    result = self._do(step)
        except StopIteration:
            pass
        finally:
            steps.close()

    def _do(self, step: Any) -> Any:
        if isinstance(step, float):
            return time.sleep(step)
        if isinstance(step, Request):
            return self._send(step)
        sock, response = step.stream.lines
        try:
            sock.settimeout(step.timeout)
            return response.readline() or None
        except (OSError, http.client.HTTPException, ValueError):
            return None

    def _send(self, r: Request) -> Union[Answer, str]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=r.timeout)
        if self._tls:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=r.timeout, context=self._tls)
        streams = False
        try:
            connection.request(r.method, r.path, r.body, r.headers)
            sock = connection.sock  # the connection forgets it if the server will close it
            response = connection.getresponse()
            streams = r.stream and response.status == 200
            if streams:
                stack = ExitStack()
                stack.callback(connection.close)
                stack.callback(response.close)
                return Answer(200, response.headers, lines=(sock, response), close=stack.close)
            return Answer(response.status, response.headers, response.read())
        except (OSError, http.client.HTTPException, ValueError) as e:
            return f"{type(e).__name__}: {e}"
        finally:
            if not streams:
                connection.close()


class AsyncClient(Core[Coroutine[Any, Any, Outcome], AsyncIterator[Outcome], AsyncIterator[Dict[str, Any]]]):
    """The same methods, awaitable. It does not block the event loop.

    A cancelled call ends its request at once. If the write was recorded, it continues at the
    server. The same call later is the same write: await the cancelled one before it.
    """

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def _wrap(self, function: Callable[..., Any], call: Callable[..., Coroutine[Any, Any, Outcome]]) -> Callable[..., Coroutine[Any, Any, Outcome]]:
        @functools.wraps(function)
        async def wrapped(*args: Any, **kwargs: Any) -> Outcome:
            return await call(*args, **kwargs)

        return wrapped

    async def _run(self, steps: Steps[None]) -> Outcome:
        results = self._iterate(steps)
        try:
            outcome: Outcome = await results.__anext__()
            return outcome
        finally:
            await results.aclose()

    async def _iterate(self, steps: Steps[None]) -> AsyncGenerator[Any, None]:
        result = None
        try:
            while True:
                step = steps.send(result)
                if isinstance(step, Result):
                    result = None
                    yield step.value
                else:
                    result = await self._do(step)
        except StopIteration:
            pass
        finally:
            steps.close()

    async def _do(self, step: Any) -> Any:
        if isinstance(step, float):
            return await asyncio.sleep(step)
        if not isinstance(step, (Request, Line)):
            return await step
        try:
            if isinstance(step, Line):
                return await within(step.timeout, step.stream.lines.line())
            if step.stream:  # it stays open for long, and must not take a slot
                return await within(step.timeout, self._send(step))
            return await within(step.left + SLACK, self._in_turn(step))
        except (OSError, EOFError, ValueError, IndexError, http.client.HTTPException, asyncio.TimeoutError,
                asyncio.LimitOverrunError) as e:
            return None if isinstance(step, Line) else f"{type(e).__name__}: {e}"

    async def _in_turn(self, r: Request) -> Answer:
        async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(OPEN)):
            return await within(r.timeout, self._send(r))

    async def _send(self, r: Request) -> Answer:
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        streams = False
        try:
            headers = {**r.headers, "Content-Length": str(len(r.body or b""))}
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"{r.method} {r.path} HTTP/1.1\r\n{head}\r\n".encode("ascii") + (r.body or b""))
            await writer.drain()
            status = int((await reader.readline()).split(None, 2)[1])
            fields = http.client.parse_headers(io.BytesIO(await reader.readuntil(b"\r\n\r\n")))
            streams = r.stream and status == 200
            if streams:
                return Answer(200, fields, lines=Body(reader, fields), close=writer.close)
            return Answer(status, fields, await Body(reader, fields).whole())
        finally:
            if not streams:
                writer.close()


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Is asyncio.wait_for, which before Python 3.12 can lose a cancellation."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise asyncio.TimeoutError(f"no response within {seconds:.0f} s")
        return task.result()
    finally:
        task.cancel()


class Body:
    """The body of a response, as it arrives."""

    def __init__(self, reader: asyncio.StreamReader, headers: Message) -> None:
        self.reader, self.rest, self.ended = reader, b"", False
        self.chunked = headers.get("Transfer-Encoding", "").lower() == "chunked"
        self.length = None if self.chunked else headers.get("Content-Length")

    async def block(self) -> bytes:
        """Returns the next bytes, and none at the end."""
        if self.ended:
            return b""
        if self.chunked:
            size = int((await self.reader.readline()).split(b";")[0], 16)
            data = (await self.reader.readexactly(size + 2))[:-2]
        elif self.length is not None:
            data, self.ended = await self.reader.readexactly(int(self.length)), True
        else:
            data = await self.reader.read(1 << 16)
        self.ended = self.ended or not data
        return data

    async def whole(self) -> bytes:
        data = b""
        while not self.ended:
            data += await self.block()
        return data

    async def line(self) -> Optional[bytes]:
        while b"\n" not in self.rest:
            data = await self.block()
            if not data:
                return None
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line
