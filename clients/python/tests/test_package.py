"""The wheel: built and installed offline, with equal bytes each time, and of valid Python 3.9."""

import ast
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parent.parent
LARGEST = 30 << 10


def pip(*args):
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *args, "--quiet", "--no-index", "--no-deps",
                    "--no-cache-dir"], check=True, env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})  # not every command has it as an option


class Package(unittest.TestCase):
    def test_wheel(self):
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

    def test_backend_agrees_with_the_project(self):
        sys.path.insert(0, str(ROOT))
        try:
            import backend
        finally:
            sys.path.remove(str(ROOT))
        self.assertEqual((backend.NAME, backend.VERSION, backend.PYTHON),
                         (self.project("name"), self.project("version"), self.project("requires-python")))

    def project(self, key):
        return re.search(rf'^{key} = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]

    def test_python_3_9(self):
        for path in (ROOT / "src").rglob("*.py"):
            ast.parse(path.read_text(), str(path), feature_version=(3, 9))

    def test_only_the_standard_library_at_import(self):
        code = "import sys; before = set(sys.modules); import readback; print(*{m.partition('.')[0] for m in set(sys.modules) - before})"
        shown = subprocess.run([sys.executable, "-S", "-c", code], check=True, capture_output=True, text=True,
                               env={"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}).stdout.split()
        if sys.version_info >= (3, 10):  # earlier ones have no list of their own modules
            self.assertEqual(set(shown) - set(sys.stdlib_module_names) - {"readback"}, set())


if __name__ == "__main__":
    unittest.main()
