"""README's lines of Python, run as a program of a cluster."""

import os
import re
import sys
from pathlib import Path

from conftest import run


def test_the_lines_of_the_readme_run(place: Path) -> None:
    text = Path(os.environ["README"]).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 1 and len(blocks[0].splitlines()) <= 10
    program = place / "app.py"
    program.write_text(blocks[0])
    ended = run(place, [sys.executable, str(program)], nodes=3)
    assert ended.status == 0, ended.text
    for rank in range(3):
        assert ended.said(rank) == [f"{(rank - 1) % 3} through your memory"]
