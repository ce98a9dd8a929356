"""The wheel: built and installed offline, with equal bytes each time, and of valid Python 3.9."""

import ast
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from world import BINARY, ROOT, need

TYPED = ROOT / "tests" / "typed.py"
LARGEST = 30 << 10
# Prints each address to which a program connects or sends, and what else it starts.
AUDITED = """
import sys
def hook(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        print("%s:%d" % args[1][:2], file=sys.stderr)
    elif event in ("subprocess.Popen", "os.exec", "os.system", "os.posix_spawn", "os.fork"):
        print(event, file=sys.stderr)
sys.addaudithook(hook)
"""


def pip(*args):
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *args, "--quiet", "--no-index", "--no-deps",
                    "--no-cache-dir"], check=True, env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})  # not every command has it as an option


class Package(unittest.TestCase):
    def test_wheel(self):
        need(importlib.util.find_spec("pip"), "pip")
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            sums = set()
            for name in "ab":
                pip("wheel", "--wheel-dir", str(place / name), str(ROOT))
                wheel, = (place / name).iterdir()
                sums.add(hashlib.sha256(wheel.read_bytes()).hexdigest())
            self.assertEqual(len(sums), 1, "two builds differ")
            self.assertLessEqual(wheel.stat().st_size, LARGEST)
            pip("install", "--target", str(place / "installed"), str(wheel))
            shown = subprocess.run([sys.executable, "-I", "-c", f"""
import sys; sys.path.insert(0, {str(place / "installed")!r})
import importlib.metadata, readback
print(readback.__file__, importlib.metadata.version("readback"), readback.__version__)
"""], check=True, capture_output=True, text=True).stdout.split()
            self.assertTrue(shown[0].startswith(folder), shown)
            self.assertEqual(shown[1:], [self.project("version")] * 2)
            self.assertTrue((place / "installed" / "readback" / "py.typed").exists())

    def backend(self):
        sys.path.insert(0, str(ROOT))
        try:
            import backend
        finally:
            sys.path.remove(str(ROOT))
        return backend

    def test_backend_agrees_with_the_project(self):
        backend = self.backend()
        self.assertEqual((backend.NAME, backend.VERSION, backend.PYTHON),
                         (self.project("name"), self.project("version"), self.project("requires-python")))

    def project(self, key):
        return re.search(rf'^{key} = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]

    def test_python_3_9(self):
        paths = [path for folder in ("src", "tests", "threads") for path in (ROOT / folder).rglob("*.py")]
        for path in [ROOT / "backend.py", *paths]:
            ast.parse(path.read_text(), str(path), feature_version=(3, 9))

    def test_only_the_standard_library_at_import(self):
        code = "import sys; before = set(sys.modules); import readback; print(*{m.partition('.')[0] for m in set(sys.modules) - before})"
        shown = subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, text=True,
                               env={"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}).stdout.split()
        if sys.version_info >= (3, 10):  # earlier ones have no list of their own modules
            self.assertEqual(set(shown) - set(sys.stdlib_module_names) - {"readback"}, set())

    def test_the_program_of_the_readme(self):
        need(BINARY.exists(), f"{BINARY} (make build)")
        program = AUDITED + re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[1]
        with tempfile.TemporaryDirectory() as folder:  # with nothing but the wheel, of which Python imports, and the server
            wheel = os.path.join(folder, self.backend().build_wheel(folder))
            dev = subprocess.Popen([BINARY, "dev", "--no-browser", "--listen", "127.0.0.1:0"], cwd=folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
            try:
                url = dev.stdout.readline().strip()
                env = dict(os.environ, PYTHONPATH=wheel, PYTHONDONTWRITEBYTECODE="1", READBACK_URL=url)
                runs = [subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, capture_output=True, text=True, env=env)
                        for _ in range(2)]
            finally:
                dev.terminate()
                dev.stdout.close()
                dev.wait()
        self.assertRegex(runs[0].stdout, "^verified ord_")
        self.assertEqual(runs[1].stdout, runs[0].stdout)
        self.assertEqual(set(runs[0].stderr.split()), {url[len("http://"):]}, "it talks to others than the server")

    def refused(self):
        """The lines of typed.py that a checker must refuse."""
        return {n for n, line in enumerate(TYPED.read_text().splitlines(), 1) if line.endswith("# refused")}

    def test_mypy(self):
        need(shutil.which("mypy"), "mypy")
        with tempfile.TemporaryDirectory() as cache:
            shown = subprocess.run(["mypy", "--strict", "--no-error-summary", "--cache-dir", cache, str(ROOT / "src" / "readback"), str(TYPED)],
                                   cwd=ROOT, capture_output=True, text=True).stdout
        self.assertEqual({int(n) for n in re.findall(r"typed\.py:(\d+): error", shown)}, self.refused(), shown)
        self.assertNotIn("src/readback", shown)

    def test_pyright(self):
        pyright = ROOT / "node_modules" / ".bin" / "pyright"
        need(pyright.exists(), f"{pyright} (make clients-python)")
        shown = subprocess.run([pyright, "--outputjson", "--project", "pyproject.toml"], cwd=ROOT, capture_output=True, text=True).stdout
        found = {(pathlib.Path(d["file"]).name, d["range"]["start"]["line"] + 1) for d in json.loads(shown)["generalDiagnostics"]
                 if d["severity"] == "error"}
        self.assertEqual(found, {(TYPED.name, n) for n in self.refused()}, shown)


if __name__ == "__main__":
    unittest.main()
