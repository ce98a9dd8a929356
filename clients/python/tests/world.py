"""A server, the simulated shop that it writes to, and a proxy that loses responses: what the tests run against."""

import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).parent.parent
BINARY = pathlib.Path(os.environ.get("READBACK_BINARY", ROOT.parent.parent / "bin" / "readback"))
STRICT = os.environ.get("READBACK_STRICT") == "1"
sys.path.insert(0, str(ROOT / "src"))


def need(there, what):
    """Skips a test, with the reason, or fails it where nothing may be left out."""
    if not there and STRICT:
        raise AssertionError(f"{what} is missing")
    if not there:
        print(f"skipped: {what} is missing", file=sys.stderr)
        raise unittest.SkipTest(f"{what} is missing")


def until(condition, seconds=60):
    """Polls a condition of other processes."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come true in time")
        time.sleep(0.01)


class World:
    """A shop and a server in a folder of their own. more goes into the configuration.

    The horizon of the shop is short, so that a test can wait until an order that never arrived is known to be absent.
    """

    def __init__(self, more="", horizon="1s", send_timeout="30s"):
        need(BINARY.exists(), f"{BINARY} (make build)")
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.shop_process, self.shop = self.start("simulated-orders")
        (self.path / "readback.yaml").write_text(
            "ledger: readback.db\ndestinations:\n"
            f"  orders: {{type: simulated, url: '{self.shop}', class: plain, horizon: {horizon}, send_timeout: {send_timeout}}}\n"
            f"server: {{person_tokens: true}}\n{more}")
        self.server = None
        self.serve("127.0.0.1:0")
        self.token = self.make_token("agent")

    def start(self, *args):
        process = subprocess.Popen([BINARY, *args], cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        address = process.stdout.readline().strip()
        if not address.startswith("http://"):
            raise AssertionError(f"{args} printed {address!r}")
        return process, address

    def serve(self, address=None):
        """Starts the server, again at its address."""
        self.server, self.url = self.start("serve", "--listen", address or self.url[len("http://"):])

    def kill(self):
        """Ends the server at once, as a failure of the machine does."""
        self.server.kill()
        self.server.wait()
        self.server.stdout.close()

    def make_token(self, role):
        return subprocess.run([BINARY, "token", "create", "--role", role, "--name", f"the-{role}"], cwd=self.path, check=True,
                              capture_output=True, text=True).stdout.strip()

    def faults(self, *faults):
        self.ask("DELETE", "/faults")
        self.ask("PUT", "/faults", "\n".join(faults).encode())

    def ask(self, method, path, body=None):
        with urllib.request.urlopen(urllib.request.Request(self.shop + path, body, method=method)) as answer:
            return answer.read()

    def effects(self):
        """Returns what requests changed, by order id."""
        effects = {}
        for effect in json.loads(self.ask("GET", "/effects")):
            if effect["by"] == "request" and effect["op"] != "phantom":
                effects.setdefault(effect["order_id"], []).append(effect)
        return effects

    def close(self):
        for process in (self.server, self.shop_process):
            if process.poll() is None:
                process.terminate()
            process.wait()
            process.stdout.close()
        self.folder.cleanup()


def order(id, **members):
    intent = {"workflow": "run", "step": f"charge-{id}", "tool": "charge_card", "destination": "orders", "kind": "order",
              "write": "create", "key": {"order_id": str(id)}, "expect": {"amount_cents": 1999, "currency": "EUR"}}
    return {name: value for name, value in {**intent, **members}.items() if value is not None}


def end(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Carries connections to a server, and cuts some: before the request, or within the response.

    Without a chance it cuts none. requests are the first bytes of each, ended those
    whose connection has ended. It carries no response until it is released.
    """

    def __init__(self, url, chance=0.0, seed=1, tls=None):
        self.to = url[len("http://"):].split(":")
        self.chance, self.random, self.tls = chance, random.Random(seed), tls
        self.requests, self.ended, self.cuts, self.arrived, self.released = [], [], 0, threading.Event(), threading.Event()
        self.released.set()
        self.open = set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.carry, args=(client, self.random.random(), self.random.random()), daemon=True).start()

    def carry(self, client, chance, where):
        with contextlib.ExitStack() as stack:
            stack.enter_context(client)
            try:
                if self.tls:
                    client = stack.enter_context(self.tls.wrap_socket(client, server_side=True))
                self.exchange(client, chance < self.chance, where)
            except OSError:
                pass
            finally:
                end(client)  # a thread may be reading from it, which keeps it open

    def exchange(self, client, cut, where):
        request = client.recv(1 << 16)
        self.requests.append(request)
        self.cuts += cut
        if cut and where < 0.3:
            return
        with socket.create_connection((self.to[0], int(self.to[1]))) as server:
            server.sendall(request)
            self.open.add(client)
            threading.Thread(target=self.copy, args=(client, server), daemon=True).start()
            while True:
                data = server.recv(1 << 16)
                self.arrived.set()
                self.released.wait()
                if cut:
                    client.sendall(data[:int(len(data) * (where - 0.3))])
                    return
                if not data:
                    self.ended.append(request)
                    return
                client.sendall(data)

    def copy(self, client, server):
        with contextlib.suppress(OSError):
            while True:
                data = client.recv(1 << 16)
                if not data:
                    break
                server.sendall(data)
        end(server)

    def cut(self):
        """Ends all connections."""
        for client in list(self.open):
            end(client)
        self.open.clear()

    def close(self):
        self.released.set()
        self.listener.close()
        self.cut()


def readback_client(w, role="reviewer"):
    import readback
    return readback.Client(w.url, w.make_token(role))
