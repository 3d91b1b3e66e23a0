"""Watching a cluster from an event loop."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import weft
from conftest import PATIENCE, WEFT, environment


@pytest.fixture
def cluster(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A running cluster of three nodes called ``t``."""
    monkeypatch.setenv("WEFT_RUNTIME_DIR", str(place))
    started = subprocess.Popen(
        [WEFT, "up", "--nodes", "3", "--name", "t"],
        env=environment(place),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield
    subprocess.run([WEFT, "down", "--name", "t"], env=environment(place), check=True)
    started.wait(PATIENCE)


def inject(place: Path, *words: str) -> None:
    subprocess.run([WEFT, "inject", *words, "--name", "t"], env=environment(place), check=True)


async def events(place: Path) -> list[weft.WatchEvent]:
    seen: list[weft.WatchEvent] = []
    async for event in weft.watch("t", patience=20):
        seen.append(event)
        if event.event == "view" and [it["rank"] for it in event.members] == [0, 1, 2]:
            if any(it.event == "removed" for it in seen):
                return seen
            await asyncio.to_thread(inject, place, "kill", "1")
    raise AssertionError("the end of a watch that has none")


def test_a_watch_shows_what_happens(place: Path, cluster: None) -> None:
    seen = asyncio.run(asyncio.wait_for(events(place), PATIENCE))
    removed = [event for event in seen if event.event == "removed" and event.rank == 1]
    assert removed and removed[0].incarnation == "1/0" and removed[0].verdict, seen
    numbers = [event.view for event in seen if event.event == "view"]
    assert numbers == sorted(set(numbers))


async def fails_in_a_handler() -> None:
    async for _ in weft.watch("t", patience=20):
        1 // 0


def test_an_exception_in_a_handler_ends_the_watch(cluster: None) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            asyncio.run(asyncio.wait_for(fails_in_a_handler(), PATIENCE))
    # The connection itself ends with the next turn of its thread.
    assert len(os.listdir("/proc/self/fd")) <= before + 2 * 3


async def waits_for_nothing() -> int:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            async for _ in weft.watch("t", patience=20):
                pass
    ticking.cancel()
    return ticks


def test_the_event_loop_goes_on_meanwhile(cluster: None) -> None:
    assert asyncio.run(waits_for_nothing()) > 10


async def first(name: str) -> weft.WatchEvent:
    async for event in weft.watch(name, patience=0.1):
        return event
    raise AssertionError("the end of a watch that has none")


def test_a_cluster_that_does_not_run_is_an_error(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_RUNTIME_DIR", str(place))
    with pytest.raises(weft.Error) as raised:
        asyncio.run(first("t"))
    assert raised.value.code == "cluster_not_running"
    with pytest.raises(weft.Error) as raised:
        asyncio.run(first("no/name"))
    assert raised.value.code == "cluster_name"
