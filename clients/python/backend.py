"""Builds the wheel with the standard library only (PEP 517). Equal sources give equal bytes."""

import base64
import hashlib
import pathlib
import zipfile

NAME, VERSION, PYTHON = "readback", "0.1.0", ">=3.9"  # as in pyproject.toml; a test compares them
ROOT = pathlib.Path(__file__).parent
INFO = f"{NAME}-{VERSION}.dist-info"


def get_requires_for_build_wheel(config_settings=None):
    return []


def metadata():
    text = (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n"
            "Summary: The client of readback: writes to systems that you do not own, once, and verified\n"
            f"License: Apache-2.0\nRequires-Python: {PYTHON}\n"
            f"Provides-Extra: bin\nRequires-Dist: readback-bin=={VERSION}; extra == 'bin'\n"
            "Classifier: Typing :: Typed\n"
            "Description-Content-Type: text/markdown\n\n")
    return text.encode() + (ROOT / "README.md").read_bytes()


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = pathlib.Path(metadata_directory) / INFO
    info.mkdir()
    (info / "METADATA").write_bytes(metadata())
    return INFO


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix(): path.read_bytes()
             for path in source.rglob("*") if path.suffix in (".py", ".typed")}
    files[f"{INFO}/METADATA"] = metadata()
    files[f"{INFO}/LICENSE"] = (ROOT.parent.parent / "LICENSE").read_bytes()
    files[f"{INFO}/entry_points.txt"] = b"[console_scripts]\nreadback = readback.__main__:main\n"
    files[f"{INFO}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: readback\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in sorted(files.items()))
    files[f"{INFO}/RECORD"] = (record + f"{INFO}/RECORD,,\n").encode()
    wheel = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w") as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # no time and no user of the machine that builds
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, 0o644 << 16, 3
            archive.writestr(entry, data, compresslevel=9)
    return wheel


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
