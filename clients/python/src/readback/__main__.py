"""Starts the program readback, which the package readback-bin contains for one platform."""

import importlib
import os
import subprocess
import sys
from typing import NoReturn

from . import __version__


def main() -> NoReturn:
    try:
        binary = importlib.import_module("readback_bin")
        if binary.version != __version__:  # pip leaves it as it was if readback alone is upgraded
            raise ImportError("it is that of another version")
        program = binary.path
    except ImportError:
        print(f"readback: the program {__version__} is missing. Install it with: pip install 'readback[bin]=={__version__}'\n"
              "If there is no readback-bin for this platform, build the program: "
              f"go install github.com/readback-go/readback/cmd/readback@v{__version__}", file=sys.stderr)
        sys.exit(127)  # as a shell does for a program that is missing
    command = [program, *sys.argv[1:]]
    if os.name == "posix":
        os.execv(program, command)
    child = subprocess.Popen(command)
    while True:
        try:
            sys.exit(child.wait())
        except KeyboardInterrupt:  # the console sends it to the program too, which ends by itself
            pass


if __name__ == "__main__":
    main()
