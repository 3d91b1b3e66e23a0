"""One writer and many readers on one host: who dies, who stalls, who leaves."""

import os
import select
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import weft
from conftest import PATIENCE, environment
from test_member import refusal

# How often an end is measured.
ROUNDS = 15
# How soon after the kernel has noticed an end the other side must have.
SOON_S = 0.001


@contextmanager
def process(role: Callable[..., None], *words: Path | str) -> Iterator[subprocess.Popen[str]]:
    """``role`` in an interpreter of its own, killed at the end if it has not ended."""
    call = f"import sys, test_broadcast; test_broadcast.{role.__name__}(*sys.argv[1:])"
    started = subprocess.Popen(
        [sys.executable, "-c", call, *map(str, words)],
        env=environment(Path.cwd()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def reads_all(path: str, name: str) -> None:
    with weft.Broadcast.join(path, name, timeout=PATIENCE) as reader:
        total = 0
        try:
            while True:
                message = reader.receive(timeout=PATIENCE)
                assert message is not None
                total += int.from_bytes(message, "little")
        except weft.Ended as ended:
            print(total, ended.code)


def reads_nothing(path: str, name: str) -> None:
    with weft.Broadcast.join(path, name, timeout=PATIENCE):
        # As a reader that is killed between its copy and its flag.
        sys.stdin.read()


def test_all_readers_receive_all_messages(place: Path) -> None:
    path = place / "ring"
    writer = weft.Broadcast(path, slots=8, message_len=64)
    with process(reads_all, path, "a") as a, process(reads_all, path, "b") as b:
        assert writer.admit(2, timeout=PATIENCE) and sorted(writer.readers) == ["a", "b"]
        for number in range(2000):
            assert writer.send(number.to_bytes(8, "little"), timeout=PATIENCE) == []
        writer.close()
        said = [it.communicate(timeout=PATIENCE)[0] for it in (a, b)]
    assert said == [f"{sum(range(2000))} abandoned\n"] * 2
    assert not path.exists()


def test_a_reader_that_is_killed_before_it_set_its_flag_holds_up_no_message(place: Path) -> None:
    """What the shared-memory broadcast of vLLM does not survive: it waits for that flag forever."""
    path = place / "ring"
    writer = weft.Broadcast(path, slots=2, message_len=64)
    survivor = None
    joined = threading.Thread(target=lambda: admit(writer, 1))
    joined.start()
    survivor = weft.Broadcast.join(path, "survivor", timeout=PATIENCE)
    joined.join()
    with process(reads_nothing, path, "victim") as victim:
        admit(writer, 2)
        for number in range(2):
            writer.send(bytes([number]))
            assert survivor.receive() == bytes([number])
        full = refusal(lambda: writer.send(b"\2", timeout=0.1))
        assert full.code == "window_full"
        assert "victim" in full.cause and str(victim.pid) in full.cause, "it lives: not skipped"
        os.kill(victim.pid, signal.SIGKILL)
        assert writer.send(b"\2", timeout=PATIENCE) == ["victim"]
    assert survivor.receive() == b"\2" and writer.readers == ["survivor"]


def admit(writer: weft.Broadcast, count: int) -> None:
    assert writer.admit(count, timeout=PATIENCE)


def noticed(pid: int) -> float:
    """When the kernel reports the end of a process."""
    pidfd = os.pidfd_open(pid)
    try:
        assert select.select([pidfd], [], [], PATIENCE)[0]
        return time.monotonic()
    finally:
        os.close(pidfd)


def lag(pid: int, wait: Callable[[], Any]) -> float:
    """How long after the kernel ``wait`` notices the end of a process."""
    ends: list[float] = []

    def waits() -> None:
        wait()
        ends.append(time.monotonic())

    waiting = threading.Thread(target=waits)
    waiting.start()
    # The other thread is in its wait by then, or notices the end at its first look.
    time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    at = noticed(pid)
    waiting.join()
    return ends[0] - at


def test_a_dead_reader_is_skipped_at_once(place: Path) -> None:
    lags = []
    writer = weft.Broadcast(place / "ring", slots=1, message_len=8)
    for number in range(ROUNDS):
        with process(reads_nothing, place / "ring", f"reader {number}") as reader:
            admit(writer, 1)
            writer.send(b"x")
            lost: list[str] = []
            lags.append(lag(reader.pid, lambda: lost.extend(writer.send(b"y", PATIENCE))))
            assert lost == [f"reader {number}"]
    print(f"skipped after {[round(lag * 1e6) for lag in lags]} us")
    assert statistics.median(lags) <= SOON_S, lags


def writes_one(path: str) -> None:
    writer = weft.Broadcast(path, slots=4, message_len=8)
    admit(writer, 1)
    writer.send(b"last")
    sys.stdin.read()


def test_a_dead_writer_ends_its_readers_at_once(place: Path) -> None:
    lags = []
    for _ in range(ROUNDS):
        with process(writes_one, place / "ring") as writer:
            reader = weft.Broadcast.join(place / "ring", "reader", timeout=PATIENCE)
            assert reader.receive(timeout=PATIENCE) == b"last"

            def waits() -> None:
                with pytest.raises(weft.Ended) as ended:
                    reader.receive(timeout=PATIENCE)
                assert ended.value.code == "component_lost"
                assert str(writer.pid) in ended.value.cause

            lags.append(lag(writer.pid, waits))
    print(f"ended after {[round(lag * 1e6) for lag in lags]} us")
    assert statistics.median(lags) <= SOON_S, lags


def test_a_fork_and_a_second_thread_are_refused(place: Path) -> None:
    path = place / "ring"
    writer = weft.Broadcast(path, slots=1, message_len=8)
    with process(reads_nothing, path, "slow"):
        admit(writer, 1)
        child = os.fork()
        if child == 0:
            code = refusal(lambda: writer.send(b"x")).code
            os._exit(7 if code == "usage" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert path.exists(), "the child closes nothing"
        writer.send(b"x")

        def sends() -> None:
            # Either thread may meet the other.
            while refusal(lambda: writer.send(b"y", 1.0)).code != "window_full":
                pass

        sending = threading.Thread(target=sends)
        sending.start()
        codes = set()
        while sending.is_alive():
            try:
                writer.readers
            except weft.Error as error:
                codes.add(error.code)
        assert codes == {"busy"}


def test_what_does_not_fit_is_refused(place: Path) -> None:
    path = place / "ring"
    with weft.Broadcast(path, slots=1, message_len=8) as writer:
        cases: list[tuple[str, Callable[[], Any]]] = [
            ("message_too_long", lambda: writer.send(bytes(9))),
            ("name_in_use", lambda: weft.Broadcast(path)),
            ("usage", lambda: weft.Broadcast(place / "other", slots=0)),
            ("usage", lambda: weft.Broadcast.join(path, "")),
            ("node_unreachable", lambda: weft.Broadcast.join(place / "none", "r", timeout=0.1)),
            ("node_unreachable", lambda: weft.Broadcast.join(path, "not admitted", timeout=0.1)),
            ("runtime_dir", lambda: weft.Broadcast(place / "no folder" / "ring")),
        ]
        for code, act in cases:
            assert refusal(act).code == code
        assert writer.send(b"unread") == []
        assert writer.readers == [] and not writer.admit(1, timeout=0)
    assert refusal(lambda: writer.send(b"x")).code == "usage"
