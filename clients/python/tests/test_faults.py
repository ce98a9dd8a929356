"""600 orders through every fault of the destination, lost responses of the server, and kills of both processes."""

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

import world

FAULTS = [
    "lost-answer,op=create,chance=0.2", "dropped-before,op=create,chance=0.05", "bad-gateway,op=create,chance=0.05",
    "late-commit,op=create,chance=0.05,delay=200ms", "phantom-success,op=create,chance=0.02",
    "dropped-field,op=create,chance=0.02,field=currency", "normalised-field,op=create,chance=0.02,field=currency,how=lower",
    "duplicate-behind-our-back,op=create,chance=0.02", "unreadable-read,chance=0.05", "unreadable-read,chance=0.02,how=garbage",
    "refused,op=create,chance=0.02", "throttled,op=create,chance=0.02,delay=1s",
]


class Faults(unittest.TestCase):
    def test_no_duplicate_no_loss_no_unnoticed_error(self):
        count, kills, chance = 600, 6, random.Random(21)
        w = world.World(horizon="5s", send_timeout="1s")  # a late commit arrives well within the horizon
        self.addCleanup(w.close)
        proxy = world.Proxy(w.url, chance=0.1, seed=21)
        self.addCleanup(proxy.close)
        w.faults(*FAULTS)
        env = dict(os.environ, READBACK_URL=proxy.url, READBACK_TOKEN=w.token, PYTHONDONTWRITEBYTECODE="1")
        seen, last = {}, {}
        for life in range(kills + 1):
            with tempfile.TemporaryFile("w+") as errors:
                way = ("threads", "tasks")[life % 2]
                job = subprocess.Popen([sys.executable, str(world.ROOT / "tests" / "job.py"), way, str(count)],
                                       env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
                last, new = {}, 0
                quota = chance.randrange(40, 100) if life < kills else count + 1
                for line in job.stdout:
                    outcome = json.loads(line)
                    self.agrees(seen.get(outcome["id"]), outcome)
                    new += outcome["id"] not in seen
                    seen[outcome["id"]] = last[outcome["id"]] = outcome
                    if new == quota // 2 and life % 2 == 0:  # the server dies while the job waits
                        w.kill()
                        w.serve()
                        new += 1
                    if new >= quota:
                        job.kill()
                        break
                job.stdout.close()
                status = job.wait()
                errors.seek(0)
                if life == kills:
                    self.assertEqual(status, 0, errors.read())
        self.assertEqual(len(last), count, "lost, or two writes of one order")
        effects, summary = w.effects(), {}
        with world.readback_client(w) as rb:
            for id, outcome in last.items():
                key = self.step(rb, id)
                made = effects.get(key, [])
                summary[outcome["status"]] = summary.get(outcome["status"], 0) + 1
                self.assertLessEqual(len(made), 1, f"{key} is made twice")
                if outcome["status"] == "verified":
                    self.assertEqual([(e["after"]["order"]["amount_cents"], e["after"]["order"]["currency"]) for e in made],
                                     [(1999, "EUR")], f"{key} is verified")
                elif outcome["status"] == "not_applied":
                    self.assertEqual(made, [], f"{key} is not applied")
                else:
                    self.assertEqual(outcome["status"], "review", f"{key}: {outcome}")
        print(f"{count} orders, {kills} kills of the job, {kills // 2} of the server, {proxy.cuts} cut connections: {summary}",
              file=sys.stderr)
        self.assertGreater(summary["verified"], count / 2)
        self.assertGreater(summary["review"], 0, "no fault was noticed")
        self.assertGreater(proxy.cuts, 0)

    def test_counted_calls_of_a_job_that_is_killed(self):
        count, kills = 24, 3
        w = world.World()
        self.addCleanup(w.close)
        proxy = world.Proxy(w.url, chance=0.1, seed=22)
        self.addCleanup(proxy.close)
        w.faults("lost-answer,op=create,chance=0.3")
        env = dict(os.environ, READBACK_URL=proxy.url, READBACK_TOKEN=w.token, PYTHONDONTWRITEBYTECODE="1")
        ids = set()
        for life in range(kills + 1):
            job = [sys.executable, str(world.ROOT / "tests" / "job.py"), "counted", str(count)]
            with subprocess.Popen(job, env=env, stdout=subprocess.PIPE, text=True) as job:
                for n, line in enumerate(job.stdout, 1):
                    outcome = json.loads(line)
                    self.assertEqual(outcome["status"], "verified")
                    ids.add(outcome["id"])
                    if life < kills and n == 6 * (life + 1):
                        job.kill()
                        break
        self.assertEqual((job.returncode, len(ids)), (0, count))
        self.assertEqual({order: len(made) for order, made in w.effects().items()}, {f"A-{i}": 1 for i in range(count)})
        self.assertGreater(proxy.cuts, 0)

    def agrees(self, before, now):
        """An outcome that has ended does not change, unless a recheck was announced."""
        if before and before["status"] in ("verified", "not_applied") and "recheck_until" not in before:
            self.assertEqual((before["status"], before.get("ref")), (now["status"], now.get("ref")))

    def step(self, rb, id):
        if not hasattr(self, "steps"):
            self.steps = {w["id"]: w["step"][len("charge-"):] for w in rb.writes(limit=200)}
        return self.steps[id]


if __name__ == "__main__":
    unittest.main()
