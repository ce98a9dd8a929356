"""Workflow, step and call from context variables, and the decorator."""

import asyncio
import collections
import concurrent.futures
import contextlib
import contextvars
import json
import random
import subprocess
import unittest
import unittest.mock

import world

import readback


class Sent:
    """A client that sends nothing: it keeps the intents, and ends each write as scripted."""

    def __init__(self, kind, *results):
        self.client, self.intents, self.results = kind("http://127.0.0.1:1", ""), [], list(results)

        def send(request):
            self.intents.append(json.loads(request.body))
            result = self.results.pop(0) if self.results else "verified"
            if isinstance(result, BaseException):
                raise result
            return readback._core.Answer(200, {}, json.dumps({"id": f"wr_{len(self.intents)}", "status": result}).encode())

        async def send_async(request):
            return send(request)

        self.client._send = send if kind is readback.Client else send_async

    def names(self):
        return [(i["workflow"], i.get("step"), i["call"]) for i in self.intents]


CHARGE = {"tool": "charge", "destination": "orders", "kind": "order", "write": "create", "key": {"order_id": "A-1"}, "expect": {"cents": 1}}
OTHER = {**CHARGE, "key": {"order_id": "A-2"}}


class Ledger:
    """A client of a server in memory, which knows what each name was given to, and counts the effects by order."""

    def __init__(self, chance):
        self.client, self.chance, self.lost = readback.Client("http://127.0.0.1:1", "", patience=0), chance, 0.0
        self.written, self.effects = {}, collections.Counter()
        self.client._send = self.send

    def send(self, request):
        intent = json.loads(request.body)
        name = tuple(intent.get(part) for part in ("workflow", "step", "tool", "call"))
        if self.chance.random() < self.lost / 2:
            return "lost on the way there"
        before = self.written.setdefault(name, intent)
        if before != intent:
            problem = {"type": "https://readback.invalid/problems/digest-mismatch", "status": 422}
            return readback._core.Answer(422, {}, json.dumps(problem).encode())
        if name not in self.effects:
            self.effects[name] += 1
        if self.chance.random() < self.lost:
            return "lost on the way back"
        return readback._core.Answer(200, {}, json.dumps({"id": "wr_1", "status": self.chance.choice(["verified", "held"])}).encode())

    def orders(self):
        return collections.Counter(self.written[name]["key"]["order_id"] for name in self.effects)


class Place(unittest.TestCase):
    def test_jobs_that_are_lost_and_killed_and_start_again(self):
        for seed in range(300):
            chance = random.Random(seed)
            ledger = Ledger(chance)
            calls = [(chance.choice([None, "a", "b"]), chance.choice(["charge", "refund"]), chance.choice("ABC")) for _ in range(8)]
            for life in range(4):
                ledger.lost = 0.0 if life == 3 else 0.4
                with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as stack:
                    run = stack.enter_context(ledger.client.workflow("run"))
                    places = {None: run, "a": None, "b": None}
                    for step, tool, order in calls:
                        if life < 3 and chance.random() < 0.1:
                            raise KeyboardInterrupt  # it is killed here
                        if places[step] is None:
                            with ledger.client.step(step) as places[step]:
                                pass
                        intent = {**CHARGE, "tool": tool, "key": {"order_id": order}}
                        while True:
                            try:
                                if places[step].write(intent).done:
                                    break
                            except readback.NotKnown:
                                pass
            self.assertEqual(ledger.orders(), collections.Counter(order for _, _, order in calls), seed)

    def test_jobs_whose_orders_change(self):
        for seed in range(300):
            chance = random.Random(seed)
            ledger, orders, refused = Ledger(chance), list("ABCDEFG"), 0
            for life in range(4):
                with ledger.client.workflow("run"), ledger.client.step("a") as step:
                    for order in orders[:chance.randrange(len(orders) + 1)]:
                        try:
                            step.write({**CHARGE, "key": {"order_id": order}})
                        except (readback.Refused, ValueError):
                            refused += 1  # and the next one is tried
                orders = chance.sample("ABCDEFGHIJ", 7)
            self.assertEqual(set(ledger.orders().values()) - {1}, set(), seed)
        self.assertGreater(refused, 0)

    def test_calls_are_counted_by_tool_and_step(self):
        s = Sent(readback.Client)
        rb = s.client
        for _ in range(2):  # the job is started again
            with rb.workflow("run") as run:
                run.write(CHARGE)
                with rb.step("a") as a:
                    rb.write(CHARGE)
                    rb.write(CHARGE)  # wanted twice
                    a.write({**CHARGE, "tool": "refund"})
                    run.write(CHARGE)
                with rb.step("b"):
                    rb.write({**CHARGE, "call": 7})
        once = [("run", None, 0), ("run", "a", 0), ("run", "a", 1), ("run", "a", 0), ("run", None, 1), ("run", "b", 7)]
        self.assertEqual(s.names(), once * 2)

    def test_a_call_that_did_not_end_keeps_its_number(self):
        for reason, unended in {
            "no answer": readback.NotKnown("lost"), "refused, after a lost answer perhaps": readback.Refused({}),
            "stopped": KeyboardInterrupt(), "held": "held", "in review": "review", "of a newer server": "parked",
        }.items():
            s = Sent(readback.Client, unended, "verified", "verified")
            with self.subTest(reason), s.client.workflow("run"), s.client.step("a") as step:
                for intent in (CHARGE, OTHER, CHARGE, CHARGE):
                    try:
                        step.write(intent)
                    except (readback.Error, KeyboardInterrupt):
                        pass
                self.assertEqual([call for _, _, call in s.names()], [0, 1, 0, 2])

    def test_a_thread_has_no_place_of_another(self):
        s = Sent(readback.Client)
        with s.client.workflow("run"), concurrent.futures.ThreadPoolExecutor(1) as pool:
            with self.assertRaises(ValueError):
                pool.submit(s.client.write, CHARGE).result()
            with self.assertRaises(ValueError):
                with s.client.workflow(""):
                    pass
        with self.assertRaises(ValueError):
            with s.client.step("a"):
                pass
        self.assertEqual(s.intents, [])

    def test_calls_of_several_threads_or_processes_are_not_counted(self):
        s = Sent(readback.Client)
        with s.client.workflow("run") as run, concurrent.futures.ThreadPoolExecutor(1) as pool:
            run.write(CHARGE)
            with self.assertRaisesRegex(ValueError, "no fixed order"):
                pool.submit(run.write, CHARGE).result()
            with self.assertRaisesRegex(ValueError, "no fixed order"):
                pool.submit(contextvars.copy_context().run, s.client.write, CHARGE).result()
            pool.submit(run.write, {**CHARGE, "call": 5}).result()
            with unittest.mock.patch("os.getpid", return_value=-1), self.assertRaisesRegex(ValueError, "no fixed order"):  # it was forked
                run.write(CHARGE)
        self.assertEqual(s.names(), [("run", None, 0), ("run", None, 5)])

    def test_a_step_within_a_step(self):
        s = Sent(readback.Client)
        with s.client.workflow("run"), s.client.step("a"):
            with self.assertRaises(ValueError):
                with s.client.step("b"):
                    s.client.write(CHARGE)
            with s.client.workflow("another"), s.client.step("b"):
                s.client.write(CHARGE)
            s.client.write(CHARGE)
        self.assertEqual(s.names(), [("another", "b", 0), ("run", "a", 0)])

    def test_the_decorator(self):
        s = Sent(readback.Client)

        @s.client.verified(destination="orders", kind="order", key=["order_id"], operation="charge:{order_id}", risk="approve")
        def charge_card(order_id, amount_cents, currency="EUR"):
            """Charges."""

        @s.client.verified(destination="orders", kind="order", key=["id"], tool="pay")
        def pay(id, order):
            return {"cents": order.cents}

        self.assertEqual((charge_card.__name__, charge_card.__doc__), ("charge_card", "Charges."))
        with self.assertRaises(ValueError):
            pay(1, unittest.mock.Mock(cents=5))
        with s.client.workflow("run"), s.client.step("a"):
            self.assertTrue(charge_card("A-1", amount_cents=5).verified)
            pay(1, unittest.mock.Mock(cents=5))
        place = {"destination": "orders", "kind": "order", "write": "create", "workflow": "run", "step": "a", "call": 0}
        self.assertEqual(s.intents, [
            {**place, "tool": "charge_card", "risk": "approve", "key": {"order_id": "A-1"},
             "expect": {"amount_cents": 5, "currency": "EUR"}, "idempotency_key": "charge:A-1"},
            {**place, "tool": "pay", "key": {"id": 1}, "expect": {"cents": 5}}])
        for key in ([], ["nothing"]):
            with self.assertRaises(ValueError):
                s.client.verified(destination="orders", kind="order", key=key)(lambda id: None)

    def test_the_decorator_of_async_functions(self):
        s = Sent(readback.AsyncClient)

        @s.client.verified(destination="orders", kind="order", key=["id"])
        async def pay(id, cents):
            await asyncio.sleep(0)

        async def run():
            with s.client.workflow("run"):
                return await asyncio.gather(pay(1, 2), pay(3, 4))

        self.assertTrue(asyncio.iscoroutinefunction(pay))
        self.assertEqual([o.status for o in asyncio.run(run())], ["verified"] * 2)
        self.assertEqual(sorted(call for _, _, call in s.names()), [0, 1])
        with self.assertRaises(TypeError):
            Sent(readback.Client).client.verified(destination="orders", kind="order", key=["id"])(pay)

    def test_a_proxy_that_limits(self):
        self.assertEqual(readback._core.refused(readback._core.Answer(429, {})), {})

    def test_the_intent_has_the_members_of_the_schema(self):
        world.need(world.BINARY.exists(), f"{world.BINARY} (make build)")
        schema = json.loads(subprocess.run([world.BINARY, "schema"], check=True, capture_output=True, text=True).stdout)
        self.assertEqual(set(readback.Intent.__annotations__) | set(readback._outcome._Required.__annotations__),
                         set(schema["properties"]) - {"compensates"})


if __name__ == "__main__":
    unittest.main()
