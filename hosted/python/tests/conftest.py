"""Clusters for tests: ``run`` starts a function of a test module as the program of each node."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

WEFT = os.environ["WEFT"]
# How long anything may take before it counts as hung.
PATIENCE = 60.0

Role = Callable[[], None]


@dataclass
class Ended:
    """How a run has ended."""

    status: int
    text: str

    def said(self, rank: int) -> list[str]:
        """What the program of this rank has printed."""
        lines = (re.fullmatch(rf"\[?{rank}\]?[:|]? (.*)", it) for it in self.text.splitlines())
        return [line[1].strip() for line in lines if line]


@pytest.fixture
def place() -> Iterator[Path]:
    """A private folder with a path that is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="p", dir=Path.cwd()))
    yield folder
    shutil.rmtree(folder)


def command(role: Role) -> list[str]:
    """The command that runs ``role`` in an interpreter of its own."""
    module = role.__module__
    return [sys.executable, "-X", "faulthandler", "-c", f"import {module}; {module}.{role.__name__}()"]


def environment(place: Path) -> dict[str, str]:
    tests = str(Path(__file__).parent)
    return os.environ | {"WEFT_RUNTIME_DIR": str(place), "PYTHONPATH": tests}


def run(place: Path, role: Role | list[str], nodes: int = 2, more: str = "") -> Ended:
    """Runs ``role`` at each node until all have ended."""
    file = place / "c.toml"
    file.write_text(f'name = "t"\nnodes = {nodes}\n{more}')
    program = role if isinstance(role, list) else command(role)
    started = subprocess.Popen(
        [WEFT, "run", str(file), "--state", "4KiB", "--", *program],
        env=environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        text = started.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        started.kill()
        pytest.fail("it hangs: " + started.communicate()[0])
    return Ended(started.returncode, text)


def run_well(place: Path, role: Role, nodes: int = 2, more: str = "") -> Ended:
    """As ``run``, and no program has raised or failed."""
    ended = run(place, role, nodes, more)
    assert ended.status == 0 and "Traceback" not in ended.text, ended.text
    return ended
