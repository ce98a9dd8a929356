"""Each program of threads and programs duplicates before the change and does not after it; two wanted orders are two."""

import asyncio
import inspect
import os
import re
import sys
import types
import unittest
from unittest import mock

from frameworks import use
from world import ROOT, World

sys.path.append(str(ROOT / "threads"))
from scripted import Script  # noqa: E402

# The program, its framework, how many responses the shop loses, and whether a model gets the results.
PROGRAMS = [
    ("threads/openai_agents_python_4254.py", "agents", 1, True),
    ("threads/crewai_5802.py", "crewai", 1, True),
    ("threads/langgraph_6208.py", "langgraph", 1, False),
    ("threads/agent_framework_3938.py", "langgraph", 1, False),
    ("threads/google_workspace_mcp_997.py", None, 3, True),
    ("tests/programs/pydantic_ai_tool.py", "pydantic_ai", 1, True),
    ("tests/programs/adk_tool.py", "google.adk", 1, True),
]


def side(path, without):
    """Returns a program as it is before the change, or after it."""
    lines = path.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.rstrip().endswith("  # " + without))


def changed(path):
    """Counts the lines that change: of a group of neighbours, the larger side."""
    count, before, after = 0, 0, 0
    for line in path.read_text().splitlines() + [""]:
        if line.endswith("  # before"):
            before += 1
        elif line.endswith("  # after"):
            after += 1
        else:
            count, before, after = count + max(before, after), 0, 0
    return count


def play(source, path, script):
    module = types.ModuleType(path.stem)
    sys.modules[path.stem] = module  # annotations are resolved there
    exec(compile(source, str(path), "exec"), module.__dict__)
    got = module.run(script)
    if inspect.isawaitable(got):
        asyncio.run(got)


class Programs(unittest.TestCase):
    def test_programs(self):
        world = World()
        self.addCleanup(world.close)
        page = (ROOT / "threads" / "README.md").read_text()
        with mock.patch.dict(os.environ, READBACK_URL=world.url, READBACK_TOKEN=world.token, SHOP_URL=world.shop):
            for name, framework, lost, modelled in PROGRAMS:
                with self.subTest(name):
                    path = ROOT / name
                    if framework:
                        use(framework)
                    counts = {}
                    for left_out in "after", "before":
                        orders = [f"{path.stem}-{left_out}-{i}" for i in range(2)]
                        world.faults(f"lost-answer,op=create,times={lost}")
                        script = Script(orders)
                        play(side(path, left_out), path, script)
                        if left_out == "before":  # started again, it makes no other
                            play(side(path, left_out), path, Script(orders))
                        counts[left_out] = [len(world.effects().get(order, [])) for order in orders]
                    self.assertGreater(sum(counts["after"]), 2, "the plain program duplicates nothing")
                    self.assertEqual(counts["before"], [1, 1], f"with readback; the model got {script.results}")
                    verified = [re.search("verified.{1,3}true| verified: ", result, re.IGNORECASE) for result in script.results]
                    self.assertTrue(all(verified) and bool(verified) == modelled, script.results)
                    self.assertLessEqual(changed(path), 3)
                    row, = (line for line in page.splitlines() if line.startswith(f"| [{path.name}]"))
                    self.assertTrue(row.endswith(f"| {sum(counts['after'])} | 2 | {changed(path)} |"), (row, counts, changed(path)))


if __name__ == "__main__":
    unittest.main()
