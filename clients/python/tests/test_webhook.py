"""Signatures of webhooks: of messages of the server, and of altered ones."""

import base64
import hashlib
import hmac
import http.server
import os
import queue
import threading
import time
import unittest
import unittest.mock

import world

import readback
from readback import BadSignature, verify_webhook

NEW, OLD, FOREIGN = ("whsec_" + base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2, 3))


def signed(body, secret=NEW, name="msg_1", sent=None):
    sent = str(int(time.time()) if sent is None else sent)
    mac = hmac.new(base64.b64decode(secret[6:]), f"{name}.{sent}.".encode() + body, hashlib.sha256).digest()
    return {"Webhook-Id": name, "Webhook-Timestamp": sent, "Webhook-Signature": "v1a,other v1," + base64.b64encode(mac).decode()}


class Webhook(unittest.TestCase):
    def test_messages_of_the_server(self):
        messages = queue.Queue()

        class Hook(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                messages.put((self.rfile.read(int(self.headers["Content-Length"])), self.headers))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook) as hook:
            threading.Thread(target=hook.serve_forever, daemon=True).start()
            with unittest.mock.patch.dict(os.environ, HOOK_NEW=NEW, HOOK_OLD=OLD):
                w = world.World(f"webhooks:\n  - {{name: ops, url: 'http://127.0.0.1:{hook.server_port}/', secret_env: HOOK_NEW, "
                                "previous_secret_env: HOOK_OLD, allow_private: [127.0.0.0/8]}\n")
                self.addCleanup(w.close)
            readback.Client(w.url, w.token).write(world.order("A-1"))
            body, headers = messages.get(timeout=60)
            hook.shutdown()
        for secret in (NEW, OLD, [FOREIGN, NEW]):
            verify_webhook(body, headers, secret)
        with self.assertRaises(BadSignature):
            verify_webhook(body, headers, FOREIGN)
        with self.assertRaises(BadSignature):
            verify_webhook(body.replace(b"verified", b"denied"), headers, NEW)

    def test_what_is_refused(self):
        body, now = b'{"type": "write.settled"}', int(time.time())
        good = signed(body)
        verify_webhook(body, good, [FOREIGN, NEW])
        verify_webhook(body, {name.lower(): value for name, value in good.items()}, NEW[6:])
        for reason, headers in {
            "of another secret": signed(body, FOREIGN), "no headers": {}, "no number": {**good, "Webhook-Timestamp": "now"},
            "another message": {**good, "Webhook-Id": "msg_2"}, "another time": {**good, "Webhook-Timestamp": str(now - 1)},
            "too old": signed(body, sent=now - 400), "from the future": signed(body, sent=now + 400),
            "another version": {**good, "Webhook-Signature": good["Webhook-Signature"].replace("v1,", "v2,")},
            "not ASCII": {**good, "Webhook-Signature": "v1,ü"}, "not text": {**good, "Webhook-Id": "\udcff"}, "no secret": good,
        }.items():
            with self.subTest(reason), self.assertRaises(BadSignature):
                verify_webhook(body, headers, [] if reason == "no secret" else NEW)

    def test_the_tolerance_of_clocks(self):
        late = signed(b"{}", sent=int(time.time()) - 400)
        verify_webhook(b"{}", late, NEW, tolerance=500)
        with self.assertRaises(BadSignature):
            verify_webhook(b"{}", late, NEW, tolerance=float("nan"))

    def test_mistakes_of_the_program(self):
        for secret in ("whsec_", "whsec_?", "whsec_c2hvcnQ="):
            with self.assertRaises(ValueError):
                verify_webhook(b"{}", signed(b"{}"), secret)
        with self.assertRaises(TypeError):
            verify_webhook("{}", signed(b"{}"), NEW)


if __name__ == "__main__":
    unittest.main()
