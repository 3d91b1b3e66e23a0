"""Watching a cluster without being a member of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from weft._weft import Watcher


@dataclass(frozen=True, kw_only=True)
class WatchEvent:
    """An event of a cluster, as ``weft watch --json`` prints it."""

    event: str
    view: int
    term: str
    rank: int | None = None
    incarnation: str | None = None
    verdict: str | None = None
    evidence: tuple[str, ...] = ()
    fenced: bool = False
    at: int = 0
    members: tuple[dict[str, Any], ...] = ()
    task: str | None = None
    missed: int = 0

    @classmethod
    def _of(cls, line: str) -> "WatchEvent":
        fields = json.loads(line)
        lists = {name: tuple(fields[name]) for name in ("evidence", "members") if name in fields}
        known = {name: value for name, value in fields.items() if name in cls.__dataclass_fields__}
        return cls(**(known | lists))


async def watch(name: str = "weft", *, patience: float = 3.0) -> AsyncIterator[WatchEvent]:
    """Yields the views, joins, failures and removals of the running cluster ``name``.

    When the node that is asked has died, the next one is; ``weft.Error`` where none has answered
    for ``patience`` seconds.
    """
    watcher = await asyncio.to_thread(Watcher, name, patience)
    try:
        while True:
            line = watcher.next()
            if line is None:
                await _readable(watcher.fileno())
            else:
                yield WatchEvent._of(line)
    finally:
        watcher.close()


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)
