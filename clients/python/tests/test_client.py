"""What a write, a wait, a decision and an error are, against the server; with threads and with asyncio."""

import asyncio
import concurrent.futures
import contextlib
import http.server
import json
import os
import queue
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import urllib.request

import world
from world import order

import readback

RISK = "risk:\n  - {name: by hand, tool: charge_by_hand}\n"
# How many writes are declared at once. READBACK_MANY=10000 is the whole test.
MANY = int(os.environ.get("READBACK_MANY", "500"))
VERIFIED = {"id": "wr_1", "status": "verified"}


class Blocking:
    """An AsyncClient with the methods of a Client, so that one suite tests both."""

    def __init__(self, url, token, **options):
        self.inner = readback.AsyncClient(url, token, **options)

    def __getattr__(self, name):
        method = getattr(self.inner, name)
        if name in ("workflow", "step"):
            return method

        def call(*args, **kwargs):
            result = method(*args, **kwargs)
            if hasattr(result, "__anext__"):
                return self.pull(result)
            return asyncio.run(result)

        return call

    def pull(self, results):
        with_loop = asyncio.new_event_loop()
        try:
            while True:
                yield with_loop.run_until_complete(results.__anext__())
        except StopAsyncIteration:
            pass
        finally:
            with_loop.run_until_complete(results.aclose())
            with_loop.close()


class Server(unittest.TestCase):
    """A world for all tests of a class, and a proxy in front of it for each."""

    @classmethod
    def setUpClass(cls):
        cls.world = world.World(RISK)
        cls.addClassCleanup(cls.world.close)

    def client(self, url=None, token=None, **options):
        return self.kind(url or self.world.url, self.world.token if token is None else token, **options)

    def reviewer(self):
        return readback.Client(self.world.url, self.world.make_token("reviewer"))

    def proxy(self, url=None):
        proxy = world.Proxy(url or self.world.url)
        self.addCleanup(proxy.close)
        return proxy

    def fake(self, **answers):
        """A server that answers the requests of each kind as scripted, the last answer for ever. It keeps their paths.

        An answer is a status and a body, or what writes to the open connection.
        """
        paths = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                paths.append(self.path)
                kind = "events" if "/events" in self.path else "batch" if "/batch" in self.path else "other"
                answer = answers[kind].pop(0) if len(answers[kind]) > 1 else answers[kind][0]
                if answer is None:
                    return
                self.send_response(answer[0] if isinstance(answer, tuple) else 200)
                self.end_headers()
                if isinstance(answer, tuple):
                    self.wfile.write(json.dumps(answer[1]).encode())
                else:
                    answer(self.wfile)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return paths, f"http://127.0.0.1:{server.server_port}"

    def one(self, id):
        self.assertEqual(len(self.world.effects().get(str(id), [])), 1, f"effects of order {id}")


class Client(Server):
    kind = readback.Client
    name = "s"  # of its orders

    def test_a_repeat_is_the_same_write(self):
        rb, id = self.client(), self.name + "1"
        self.world.faults(f"lost-answer,op=create,key={id}")
        first, second = rb.write(order(id)), rb.write(order(id))
        self.assertEqual((first.verified, first.done, first.final, first.replayed), (True, True, True, False))
        self.assertEqual((second.id, second.replayed, second.require()), (first.id, True, second))
        self.assertTrue(first.ref)
        self.assertEqual(first.tool_result, {"id": first.id, "verified": True, "status": "verified", "what_to_do": first.for_model})
        self.assertEqual(rb.get(first.id, final=True).status, "verified")
        self.one(id)

    def test_other_content_is_refused(self):
        rb, id = self.client(), self.name + "2"
        first = rb.write(order(id))
        with self.assertRaises(readback.Refused) as refused:
            rb.write(order(id, expect={"amount_cents": 2999, "currency": "EUR"}))
        self.assertEqual(refused.exception.problem["id"], first.id)
        self.assertEqual(refused.exception.tool_result["status"], "refused")
        with self.assertRaises(readback.Refused) as refused:
            rb.write(order(id, step="other", amount=1))
        self.assertIn("amount", str(refused.exception))
        self.one(id)

    def test_a_step_whose_calls_are_others_than_in_an_earlier_run(self):
        rb, id = self.client(), self.name + "14"

        def job(*orders):
            found = []
            with rb.workflow(id), rb.step("charge") as step:
                for one in orders:
                    try:
                        outcome = step.write(order(id + one, workflow=None, step=None))
                        found.append((asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome).status)
                    except (readback.Refused, ValueError) as e:  # and the next one is tried
                        found.append(type(e))
            return found

        self.assertEqual(job("a", "b"), ["verified"] * 2)
        self.assertEqual(job("n", "a", "b", "c"), [readback.Refused] + [ValueError] * 3)
        self.assertEqual(job("a", "b", "c"), ["verified"] * 3)
        self.assertEqual({one: len(made) for one, made in self.world.effects().items() if one.startswith(id)}, {id + one: 1 for one in "abc"})

    def test_one_operation_of_two_runs(self):
        rb, id = self.client(), self.name + "3"
        first = rb.write(order(id, idempotency_key=f"charge:{id}"))
        second = rb.write(order(id, idempotency_key=f"charge:{id}", workflow="another run"))
        self.assertEqual((second.id, second.verified), (first.id, True))
        with self.assertRaises(readback.Refused):
            rb.write(order(id, idempotency_key=f"charge:{id}", workflow="a third", expect={"amount_cents": 1}))
        self.one(id)

    def test_an_operation_is_a_name(self):
        rb, id = self.client(), self.name + "4"
        intent = order(id, workflow=None, step=None, idempotency_key=f'charge "{id}" \\')
        self.world.faults(f"unreadable-read,key={id}")
        self.assertEqual([rb.write(intent, patience=0).status for _ in range(2)], ["in_progress"] * 2)
        self.world.faults()
        self.assertEqual(rb.write(intent).id, rb.write(intent).id)
        self.one(id)
        request = urllib.request.Request(self.world.url + "/v1/writes", json.dumps(intent).encode(), {
            "Authorization": "Bearer " + self.world.token, "Content-Type": "application/json",
            "Idempotency-Key": json.dumps(intent["idempotency_key"])})
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(json.load(answer)["id"], rb.write(intent).id, "as a client that sends the header names it")

    def test_no_name_is_invented(self):
        proxy = self.proxy()
        rb = self.client(proxy.url)
        for intent in (order("x", workflow=None), order("x", workflow=None, step=None), order("x", workflow="", step=None),
                       order("x", workflow=None, idempotency_key="k"), order("x", workflow=None, step=None, idempotency_key="ü"),
                       order("x", expect={"amount_cents": float("nan")})):
            with self.assertRaises(ValueError):
                rb.write(intent)
        self.assertEqual(proxy.requests, [])

    def test_a_reviewer_decides(self):
        rb, id = self.client(), self.name + "5"
        held = rb.write(order(id, tool="charge_by_hand"))
        self.assertEqual((held.status, held.waits_for_reviewer, held.done, held.verified), ("held", True, False, False))
        with self.assertRaises(readback.NotVerified) as e:
            held.require()
        self.assertEqual((e.exception.outcome, e.exception.tool_result["status"]), (held, "held"))
        with self.assertRaises(readback.Refused):  # an agent decides nothing
            rb.decide(held.id, "approve", "I want it")
        self.assertEqual([o.status for o in rb.outcomes([held.id], patience=0.5)], ["held"])  # no reviewer comes
        record, = [w for w in self.reviewer().writes(status="held") if w["id"] == held.id]
        outcomes = rb.outcomes([held.id])
        decided = threading.Thread(target=lambda: self.reviewer().decide(held.id, "approve", "it is right",
                                                                         seq=record["seq"], digest=record["digest"]))
        decided.start()
        self.assertEqual([(o.id, o.status) for o in outcomes], [(held.id, "verified")])
        decided.join()
        with self.assertRaises(readback.Refused):  # of what the reviewer saw, nothing is left
            self.reviewer().decide(held.id, "deny", "late", seq=record["seq"])
        self.assertEqual(rb.write(order(id, tool="charge_by_hand")).status, "verified")

    def test_review_without_a_reviewer(self):
        rb, id = self.client(), self.name + "6"
        self.world.faults(f"dropped-field,op=create,key={id},field=currency")
        outcome = rb.write(order(id))
        self.assertEqual((outcome.status, outcome.waits_for_reviewer, outcome.done), ("review", True, False))
        self.assertEqual((rb.write(order(id)).id, rb.get(outcome.id, wait=1).status), (outcome.id, "review"))
        self.one(id)

    def test_the_server_is_away(self):
        address = "http://127.0.0.1:%d" % self.free_port()
        with self.assertRaises(readback.NotKnown) as e:
            self.client(address, patience=1).write(order("x"))
        self.assertIsInstance(e.exception, TimeoutError)
        self.assertEqual(e.exception.tool_result["status"], "not_known")
        with self.assertRaises(readback.NotKnown):
            list(self.client(address, patience=1).outcomes(["wr_" + 32 * "0"]))
        with self.assertRaises(readback.NotKnown):
            self.client(address, patience=1).decide("wr_" + 32 * "0", "approve", "x")
        with self.assertRaises(readback.NotKnown):
            self.client(address, patience=1).get("wr_" + 32 * "0")

    def test_the_server_comes_back(self):
        w, id = world.World(), self.name + "7"
        self.addCleanup(w.close)
        proxy = self.proxy(w.url)
        proxy.released.clear()
        rb = self.kind(proxy.url, w.token)
        result = []
        waits = threading.Thread(target=lambda: result.append(rb.write(order(id))))
        waits.start()
        self.assertTrue(proxy.arrived.wait(60))
        w.kill()
        proxy.cut()  # the answer is lost
        proxy.released.set()
        world.until(lambda: len(proxy.requests) > 2)
        w.serve()
        waits.join()
        self.assertEqual([o.status for o in result], ["verified"])
        self.assertEqual(len(w.effects()[id]), 1)

    def test_a_wrong_token(self):
        for token in ("rbk_wrong", ""):
            with self.assertRaises(readback.Refused) as e:
                self.client(token=token).write(order("x"))
            self.assertEqual(e.exception.problem["status"], 401)
        with self.assertRaises(ValueError):
            self.client(token="rbk_a\r\nX-Role: operator")

    def test_clocks_are_wrong(self):
        rb = self.client()
        for i, skew in enumerate((-86400, 86400)):
            id, wrong = f"{self.name}8-{i}", time.time() + skew
            with unittest.mock.patch("time.time", lambda: wrong):
                self.assertTrue(rb.write(order(id)).verified)

    def test_pages(self):
        rb, ids = self.client(), {f"{self.name}9-{i}" for i in range(5)}
        for id in ids:
            rb.write(order(id, workflow=self.name + "pages"))
        found = []
        for write in self.kind(self.world.url, self.world.make_token("reviewer")).writes(workflow=self.name + "pages", limit=2):
            found.append(write["step"])
            rb.write(order(f"{self.name}9-{len(found)}-new", workflow=self.name + "pages"))  # what the pages are of changes meanwhile
        self.assertEqual(sorted(found), sorted(f"charge-{id}" for id in ids))

    def test_outcomes_continue_after_a_cut(self):
        rb, id = self.client(), self.name + "10"
        proxy = self.proxy()
        held = [rb.write(order(f"{id}-{i}", tool="charge_by_hand")).id for i in range(2)]
        reviewer, outcomes = self.reviewer(), self.client(proxy.url).outcomes([*held, held[0]])

        def decide():  # once the stream is open and what ended before was read
            world.until(lambda: any(b"/v1/writes/batch" in r for r in proxy.ended))
            reviewer.decide(held[0], "approve", "it is right")

        first = threading.Thread(target=decide)
        first.start()
        self.assertEqual(next(outcomes).id, held[0])
        first.join()
        proxy.cut()
        reviewer.decide(held[1], "deny", "it is wrong")
        self.assertEqual([(o.id, o.status) for o in outcomes], [(held[1], "denied")])
        streams = [r for r in proxy.requests if b"/v1/events" in r]
        self.assertEqual([b"Last-Event-ID" in r for r in streams], [False, True])

    def test_outcomes_that_have_ended_come_first(self):
        rb, id = self.client(), self.name + "12"
        held, ended = rb.write(order(id + "-0", tool="charge_by_hand")).id, rb.write(order(id + "-1")).id
        found = queue.Queue()
        waits = threading.Thread(target=lambda: [found.put(o) for o in rb.outcomes([held, ended])], daemon=True)
        waits.start()
        self.assertEqual(found.get(timeout=60).id, ended)
        self.reviewer().decide(held, "deny", "it is wrong")
        self.assertEqual(found.get(timeout=60).id, held)
        waits.join()

    def test_outcomes_of_an_unknown_write(self):
        with self.assertRaises(readback.Refused):
            list(self.client().outcomes(["wr_" + 32 * "0"]))

    def test_trouble_is_sat_out(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            bodies, script = [], [
                (0, "", b""), (503, "0", b'{"title": "The ledger cannot be used now"}'), (429, "0", b'{"title": "Too many"}'),
                (409, "0", b'{"title": "In progress", "id": "wr_1"}'), (502, "0", b"<html>"), (200, "0", b"<html>"),
                (200, "0", b'{"status": "ok"}'), (200, "0", b'{"id": "wr_1"}'),
                (202, "", b'{"id": "wr_1", "status": "in_progress"}'), (200, "", b'{"id": "wr_1", "status": "verified", "ref": "ord_1"}')]

            def do_POST(self):
                self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                status, again, body = self.script[len(self.bodies) - 1]
                if status:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    if again:
                        self.send_header("Retry-After", again)
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.assertEqual(self.client(f"http://127.0.0.1:{server.server_port}").write(order("A-1")).ref, "ord_1")
            server.shutdown()
        self.assertEqual(Handler.bodies, [json.dumps(order("A-1")).encode()] * len(Handler.script))

    def test_the_last_request_is_at_the_end_of_the_patience(self):
        _, url = self.fake(other=[None, (200, VERIFIED)])
        self.assertTrue(self.client(url, patience=1).write(order("A-1")).verified)

    def test_a_wait_of_several_requests(self):
        held = {**VERIFIED, "status": "held"}
        paths, url = self.fake(other=[(200, held), (200, held), (200, VERIFIED)])
        self.assertTrue(self.client(url, timeout=2).get("wr_1", wait=60).verified)
        self.assertEqual(len(paths), 3)

    def test_a_decision_without_an_answer_is_not_repeated(self):
        paths, url = self.fake(other=[None, (200, VERIFIED)])
        with self.assertRaisesRegex(readback.NotKnown, "get the write"):
            self.client(url).decide("wr_1", "approve", "it is right")
        self.assertEqual(len(paths), 1)
        for status, error in (429, readback.Refused), (409, readback.Refused), (503, readback.NotKnown), (200, readback.NotKnown):
            paths, url = self.fake(other=[(status, {"title": "busy"}), (200, VERIFIED)])
            with self.assertRaises(error):
                self.client(url).decide("wr_1", "approve", "it is right")
            self.assertEqual(len(paths), 1)

    def test_a_refusal_after_a_lost_response(self):
        for answers, error in (
            ([None, (403, {"title": "no"})], readback.NotKnown),  # the first request may have been recorded
            ([None, (422, {"title": "other content"})], readback.Refused),  # what the server knows of the write
            ([(401, {"title": "no"})], readback.Refused),
        ):
            _, url = self.fake(other=answers)
            with self.assertRaises(error):
                self.client(url).write(order(f"{self.name}-after"))
        _, url = self.fake(other=[(200, {**VERIFIED, "status": "in_progress"}), (401, {"title": "no"})])
        self.assertEqual(self.client(url).write(order(f"{self.name}-after")).status, "in_progress")

    def test_writes_that_the_server_cannot_read(self):
        damaged = {"writes": [{"id": "wr_1"}], "unread": [{"id": "wr_2", "reason": "damaged"}], "next": "c"}
        _, url = self.fake(other=[(200, damaged), (200, {"writes": []})])
        found = []
        with self.assertRaisesRegex(RuntimeError, "wr_2: damaged"):
            for write in self.client(url).writes(status=["held", "review"], workflow=None):
                found.append(write["id"])
        self.assertEqual(found, ["wr_1"])

    def test_a_stream_that_the_server_will_close(self):
        read, ended = threading.Event(), threading.Event()
        self.addCleanup(ended.set)

        def stream(out):
            read.wait(60)
            out.write(b"id: 7\nevent: outcome\ndata: " + json.dumps({"outcome": VERIFIED}).encode() + b"\n\n")
            out.flush()
            ended.wait(60)

        def batch(out):
            out.write(json.dumps({"results": [{"status": 200, "outcome": {**VERIFIED, "status": "in_progress"}}]}).encode())
            read.set()

        paths, url = self.fake(events=[stream], batch=[batch])
        self.assertEqual([o.status for o in self.client(url).outcomes(["wr_1"], patience=20)], ["verified"])
        self.assertEqual(len(paths), 2)

    def test_streams_that_end_at_once(self):
        open_still = (200, {"results": [{"status": 200, "outcome": {**VERIFIED, "status": "held"}}]})
        for garbage in b"", b"<html>\n\n", b"\xff\n\nevent: outcome\ndata: {\n\ndata: []\n\n":
            paths, url = self.fake(events=[lambda out: out.write(garbage)], batch=[open_still])
            self.assertEqual([o.status for o in self.client(url).outcomes(["wr_1"], patience=0.5)], ["held"])
            self.assertLess(len(paths), 20, "it does not pause")

    def test_a_stream_of_other_writes_that_never_ends(self):
        def flood(out):
            with contextlib.suppress(OSError):
                while True:
                    out.write(b"id: 7\nevent: outcome\ndata: {}\n\n" * 100)

        _, url = self.fake(events=[flood], batch=[(200, {"results": [{"status": 200, "outcome": {**VERIFIED, "status": "held"}}]})])
        self.assertEqual([o.status for o in self.client(url).outcomes(["wr_1"], patience=0.5)], ["held"])

    def test_an_address_that_is_none(self):
        for url in "", "ftp://host", "https://", "https://ada:secret@host", "https://:secret@host", "https://host?x=1", "https://host:99999":
            with self.assertRaises(ValueError) as e:
                self.client(url or "//")
            self.assertNotIn("secret", str(e.exception))

    def test_outcomes_that_a_limit_keeps_back(self):
        limited = (200, {"results": [{"status": 429, "retry_after": 1, "problem": {"title": "too many"}}]})
        streams = [lambda out: None]
        _, url = self.fake(events=streams, batch=[limited, limited, (200, {"results": [{"status": 200, "outcome": VERIFIED}]})])
        self.assertEqual([o.status for o in self.client(url).outcomes(["wr_1"])], ["verified"])
        _, url = self.fake(events=streams, batch=[limited])
        with self.assertRaises(readback.NotKnown):
            list(self.client(url, patience=1).outcomes(["wr_1"]))
        _, url = self.fake(events=streams, batch=[(200, {"results": [{"status": 500, "problem": {"title": "damaged"}}]})])
        with self.assertRaises(readback.Refused):
            list(self.client(url).outcomes(["wr_1"]))

    def test_no_redirect_is_followed(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_response(307)
                self.send_header("Location", world_url)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        world_url = self.world.url + "/v1/writes"
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with self.assertRaises(readback.Refused):
                self.client(f"http://127.0.0.1:{server.server_port}").write(order(self.name + "11"))
            server.shutdown()
        self.assertNotIn(self.name + "11", self.world.effects())

    def test_tls(self):
        world.need(shutil.which("openssl"), "openssl")
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                            "-subj", "/CN=readback", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                           check=True, capture_output=True)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            proxy = world.Proxy(self.world.url, tls=context)
            self.addCleanup(proxy.close)
            url = "https" + proxy.url[len("http"):]
            with self.assertRaisesRegex(readback.NotKnown, "(?i)certificate"):
                self.client(url, patience=1).write(order(self.name + "13"))
            self.assertEqual(proxy.requests, [])
            with unittest.mock.patch.dict(os.environ, SSL_CERT_FILE=certificate):
                self.assertEqual(self.client(url).write(order(self.name + "13")).status, "verified")

    def test_the_job_is_killed(self):
        w = world.World()
        self.addCleanup(w.close)
        proxy = self.proxy(w.url)
        proxy.released.clear()
        env = dict(os.environ, READBACK_URL=proxy.url, READBACK_TOKEN=w.token, PYTHONDONTWRITEBYTECODE="1")
        job = [sys.executable, str(world.ROOT / "tests" / "job.py"), {"s": "threads", "a": "tasks"}[self.name], "1"]
        with subprocess.Popen(job, env=env, stdout=subprocess.PIPE, text=True) as first:
            self.assertTrue(proxy.arrived.wait(60))  # the server answers, and the job does not get it
            first.kill()
        self.assertEqual(first.returncode, -signal.SIGKILL)
        proxy.released.set()
        outcome = json.loads(subprocess.run(job, env=env, check=True, capture_output=True, text=True).stdout)
        self.assertEqual((outcome["status"], outcome["replayed"]), ("verified", True))
        self.assertEqual({id: len(made) for id, made in w.effects().items()}, {"A-0": 1})

    def free_port(self):
        import socket
        with socket.create_server(("127.0.0.1", 0)) as s:
            return s.getsockname()[1]


class AsyncClient(Client):
    kind = Blocking
    name = "a"


async def until(condition):
    """Is world.until, which would block the loop."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come true in time")
        await asyncio.sleep(0.01)


class Async(Server, unittest.IsolatedAsyncioTestCase):
    kind = readback.AsyncClient

    async def test_the_event_loop_is_not_blocked(self):
        proxy = self.proxy()
        proxy.released.clear()
        async with self.client(proxy.url) as rb:
            write = asyncio.ensure_future(rb.write(order("l1")))
            await until(proxy.arrived.is_set)  # it is set only if the loop continues
            self.assertFalse(write.done())
            proxy.released.set()
            self.assertTrue((await write).verified)

    async def test_a_cancelled_write_is_safe(self):
        proxy = self.proxy()
        proxy.released.clear()
        rb = self.client(proxy.url)
        with rb.workflow("cancelled") as place:
            intent = order("c1", workflow=None, step=None)
            for _ in range(2):
                proxy.arrived.clear()
                write = asyncio.ensure_future(place.write(intent))
                await until(proxy.arrived.is_set)
                write.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await write
            soon = asyncio.ensure_future(place.write(intent))
            soon.cancel()  # before it began
            with self.assertRaises(asyncio.CancelledError):
                await soon
            proxy.released.set()
            outcome = await place.write(intent)
            self.assertEqual((outcome.status, outcome.replayed), ("verified", True))
            await place.write(order("c2", workflow=None, step=None))
        self.one("c1")
        calls = [json.loads(r.partition(b"\r\n\r\n")[2]).get("call") for r in proxy.requests]
        self.assertEqual(calls, [0, 0, 0, 1], "the cancelled call keeps its number")

    async def test_a_cancelled_write_ends_its_request(self):
        arrived, gone = asyncio.Event(), asyncio.Event()

        async def serve(reader, writer):
            arrived.set()
            while await reader.read(1 << 16):
                pass
            writer.close()
            gone.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        write = asyncio.ensure_future(self.client("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]).write(order("c5")))
        await arrived.wait()
        write.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await write
        await asyncio.wait_for(gone.wait(), 30)
        server.close()
        await server.wait_closed()

    async def test_who_waits_for_a_turn_loses_patience(self):
        requests = []

        async def silent(reader, writer):
            requests.append(await reader.read(1 << 16))
            await reader.read(1 << 16)
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        with unittest.mock.patch.multiple("readback._client", OPEN=1, SLACK=0.2), unittest.mock.patch("readback._core.SLACK", 0.2):
            rb = self.client("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], patience=0)
            found = await asyncio.gather(*[rb.write(order(f"q{i}")) for i in range(5)], return_exceptions=True)
        self.assertEqual({type(e) for e in found}, {readback.NotKnown})
        self.assertLess(len(requests), 5, "each waited for all others")
        server.close()
        await server.wait_closed()

    async def test_no_cancellation_is_lost(self):
        rb, answer = self.client(), asyncio.get_running_loop().create_future()

        async def send(request):
            return await answer

        rb._send = send
        write = asyncio.ensure_future(rb.write(order("c4")))
        for _ in range(5):
            await asyncio.sleep(0)
        answer.set_result(readback._core.Answer(200, {}, b'{"id": "wr_1", "status": "verified"}'))
        write.cancel()  # while the answer is under way to it
        with self.assertRaises(asyncio.CancelledError):
            await write

    async def test_cancelled_iterators_close_their_stream(self):
        proxy = self.proxy()
        rb = self.client(proxy.url)
        held = await rb.write(order("c3", tool="charge_by_hand"))
        waits = asyncio.ensure_future(rb.outcomes([held.id]).__anext__())
        await until(lambda: any(b"/v1/events" in r for r in proxy.requests))
        waits.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await waits

    async def test_many_at_once(self):
        async with self.client() as rb:
            outcomes = await asyncio.gather(*[rb.write(order(f"m{i}", workflow="many")) for i in range(MANY)])
        self.assertEqual({o.status for o in outcomes}, {"verified"})
        effects = self.world.effects()
        self.assertEqual({len(effects[f"m{i}"]) for i in range(MANY)}, {1})

    async def test_the_same_at_once(self):
        async with self.client() as rb:
            outcomes = await asyncio.gather(*[rb.write(order("same")) for _ in range(50)])
        self.assertEqual({(o.id, o.status) for o in outcomes}, {(outcomes[0].id, "verified")})
        self.one("same")

    def test_many_threads(self):
        with readback.Client(self.world.url, self.world.token) as rb, concurrent.futures.ThreadPoolExecutor(100) as pool:
            outcomes = list(pool.map(rb.write, [order(f"t{i}", workflow="many threads") for i in range(MANY)]))
        self.assertEqual({o.status for o in outcomes}, {"verified"})
        effects = self.world.effects()
        self.assertEqual({len(effects[f"t{i}"]) for i in range(MANY)}, {1})

    def test_a_client_in_loops_of_several_threads(self):
        open, peaks = [], []

        def answer(out):
            open.append(out)
            peaks.append(len(open))
            time.sleep(0.05)  # the work of the server
            out.write(json.dumps(VERIFIED).encode())
            open.remove(out)

        _, url = self.fake(other=[answer])

        async def write(i):
            await asyncio.sleep(i / 1000)  # others of other loops come in between
            return (await rb.write(order(f"h{i}"))).status

        async def writes():
            return await asyncio.gather(*map(write, range(50)))

        with unittest.mock.patch("readback._client.OPEN", 2), concurrent.futures.ThreadPoolExecutor(4) as pool:
            rb = self.client(url)
            for future in [pool.submit(asyncio.run, writes()) for _ in range(4)]:
                self.assertEqual(future.result(60), ["verified"] * 50)
        self.assertLessEqual(max(peaks), 2 * 4)

    def test_a_client_in_two_loops(self):
        rb = self.client()
        for i in range(2):
            self.assertTrue(asyncio.run(rb.write(order(f"two{i}"))).verified)


if __name__ == "__main__":
    unittest.main()
