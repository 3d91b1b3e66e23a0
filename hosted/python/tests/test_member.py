"""A member: messages, broadcasts, events, and how a program misuses them or ends."""

import asyncio
import gc
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import weft
from conftest import run_well


def refusal(act: Callable[[], Any]) -> weft.Error:
    """What ``act`` is refused with."""
    with pytest.raises(weft.Error) as raised:
        act()
    assert raised.value.cause and raised.value.cure
    return raised.value


def join() -> tuple[weft.Member, int]:
    """The member, and the rank of the other one of two."""
    member = weft.join()
    return member, 1 - member.rank


def taken(member: weft.Member) -> weft.Message:
    message = member.take(timeout=20)
    assert message is not None
    return message


def exchanges() -> None:
    member, other = join()
    for number in range(500):
        member.put(other, number.to_bytes(4, "little"))
        with taken(member) as message:
            assert message.payload.readonly and message.payload.nbytes == 4
            assert (message.sender, int.from_bytes(message.payload, "little")) == (other, number)
    assert member.flush()
    print("exchanged", member.size, member.name)


def test_members_exchange_messages(place: Path) -> None:
    ended = run_well(place, exchanges)
    assert ended.said(0) == ended.said(1) == ["exchanged 2 t"]


def releases() -> None:
    member = weft.join()
    member.put(member.rank, b"through your memory")
    message = taken(member)
    view = message.payload
    assert view is message.payload and bytes(view) == b"through your memory"
    message.release()
    with pytest.raises(ValueError, match="released memoryview"):
        view[0]
    assert refusal(lambda: message.payload).code == "usage"
    assert refusal(message.release).code == "usage"
    del view, message
    gc.collect()
    print("released")


def test_a_payload_is_invalid_once_its_message_is_released(place: Path) -> None:
    assert run_well(place, releases).said(0) == ["released"]


def keeps() -> None:
    member = weft.join()
    for keep in (lambda view: view[8:12], lambda view: numpy.frombuffer(view, numpy.uint8)):
        member.put(member.rank, b"through your memory")
        message = taken(member)
        kept = keep(message.payload)
        assert refusal(message.release).code == "busy"
        assert bytes(kept)[:4] in (b"your", b"thro"), "what is in use stays"
        del kept
        message.release()
    print("kept")


def test_a_payload_that_is_in_use_is_not_released(place: Path) -> None:
    assert run_well(place, keeps).said(0) == ["kept"]


def takes_batches() -> None:
    member = weft.join()
    sent: list[bytes | bytearray | memoryview] = [b"one", b"", bytearray(b"three"), memoryview(b"four")]
    assert member.put_batch(member.rank, sent, timeout=20) == 4
    assert member.put_batch(member.rank, []) == 0
    got: list[weft.Message] = []
    while len(got) < 4:
        batch = member.take_batch(min(3, 4 - len(got)), timeout=20)
        assert 1 <= len(batch) <= 3
        got += batch
    assert [bytes(message.payload) for message in got] == [bytes(it) for it in sent]
    assert member.take_batch(0, timeout=math.inf) == member.take_batch(9) == []
    # All of them or none: not while one is in use, nor one of them twice.
    kept = got[3].payload[1:]
    assert refusal(lambda: member.release_batch(got)).code == "busy"
    del kept
    assert refusal(lambda: member.release_batch([got[0], got[0]])).code == "busy"
    with pytest.raises(TypeError):
        member.release_batch([got[0], b"no message"])  # type: ignore[list-item]
    assert bytes(got[0].payload) == b"one", "it was not released"
    view = got[0].payload
    member.release_batch(got)
    with pytest.raises(ValueError, match="released memoryview"):
        view[0]
    assert refusal(lambda: member.release_batch(got)).code == "usage"
    assert refusal(lambda: member.put_batch(99, sent)).code == "node_out_of_range"
    with pytest.raises(TypeError):
        member.put_batch(member.rank, [b"good", 7])  # type: ignore[list-item]
    assert member.take() is None, "nothing of a batch with a wrong payload was put"
    print("in batches")


def test_batches_are_put_taken_and_released(place: Path) -> None:
    assert run_well(place, takes_batches).said(0) == ["in batches"]


def raises_in_a_handler() -> None:
    member = weft.join()
    member.put(member.rank, b"work")
    message = taken(member)
    with pytest.raises(ZeroDivisionError), message:
        1 // 0
    assert bytes(message.payload) == b"work", "it was not processed, so it is not released"
    with message:
        pass
    print("handled")


def test_a_block_that_raises_releases_nothing(place: Path) -> None:
    assert run_well(place, raises_in_a_handler).said(0) == ["handled"]


def dies_with_a_message() -> None:
    member, other = join()
    if member.rank == 0:
        member.put(other, b"once")
        taken(member).release()
    else:
        message = taken(member)
        assert bytes(message.payload) == b"once"
        if member.incarnation == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        message.release()
        member.put(other, b"done")
    print("incarnation", member.incarnation)


def test_what_was_not_released_is_taken_by_the_next_incarnation(place: Path) -> None:
    ended = run_well(place, dies_with_a_message)
    assert ended.said(1) == ["incarnation 2"]


def broadcasts() -> None:
    member, other = join()
    numbers = [member.broadcast(f"{member.rank}:{i}".encode(), timeout=20) for i in range(50)]
    assert numbers == list(range(numbers[0], numbers[0] + 50))
    delivery = None
    for i in range(50):
        delivery = member.deliver(timeout=20)
        assert delivery is not None
        assert (delivery.origin, delivery.payload) == (other, f"{other}:{i}".encode())
    assert delivery is not None
    last = member.delivered(other, delivery.seq)
    assert last is not None and last.payload == delivery.payload
    print("delivered")


def test_broadcasts_are_delivered_in_order(place: Path) -> None:
    ended = run_well(place, broadcasts)
    assert ended.said(0) == ended.said(1) == ["delivered"]


def observes() -> None:
    member, other = join()
    events: list[weft.Event] = []
    while not any(event.kind == "view" and event.members == [0, 1] for event in events):
        assert member.wait(timeout=20)
        events += member.events()
    view = member.view
    assert view is not None and view.members == [0, 1] and view.manager == member.manager
    assert view.incarnation(other) is not None and view.incarnation(9) is None
    assert any((event.kind, event.rank) == ("joined", other) for event in events), events
    assert member.members == [0, 1] and not member.is_view_stale
    member.put(other, b"seen")
    taken(member).release()
    print("observed")


def test_events_and_views_show_the_members(place: Path) -> None:
    ended = run_well(place, observes)
    assert ended.said(0) == ended.said(1) == ["observed"]


def misuses() -> None:
    member = weft.join()
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("node_out_of_range", lambda: member.put(99, b"x")),
        ("node_out_of_range", lambda: member.put(-1, b"x")),
        ("node_out_of_range", lambda: member.put_batch(1 << 80, [b"x"])),
        ("message_too_long", lambda: member.put(0, bytes(member.message_len + 1))),
        ("message_too_long", lambda: member.broadcast(bytes(member.broadcast_len + 1))),
        ("usage", lambda: member.take(timeout=math.nan)),
        ("usage", lambda: member.take(timeout=-1.0)),
        ("usage", lambda: weft.join()),
        ("message_too_long", lambda: member.save(bytes(4097))),
        ("cluster_file", lambda: member.group("none")),
        ("task_unknown", lambda: member.vote("none", 1, 41)),
        ("task_unknown", lambda: member.vote("none", 1, b"bytes")),
        ("task_unknown", lambda: member.report_phase("none", 1)),
        ("task_unknown", lambda: member.notices("none")),
        ("cluster_file", lambda: member.send(0, "x", 0, numpy.zeros(1))),
    ]
    for code, act in cases:
        assert refusal(act).code == code
    for wrong in ("text", 7, None):
        with pytest.raises(TypeError):
            member.put(0, wrong)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        member.vote("none", 1, 2**63)
    assert member.take() is None and member.deliver() is None
    print("refused")


def test_misuse_has_a_code_a_cause_and_a_cure(place: Path) -> None:
    assert run_well(place, misuses).said(0) == ["refused"]


def test_a_process_that_no_node_has_started_is_no_member() -> None:
    error = refusal(weft.join)
    assert (error.code, str(error)) == ("usage", f"{error.cause}: {error.cure} [usage]")


def forks() -> None:
    member = weft.join()
    member.put(member.rank, b"mine")
    message = taken(member)
    child = os.fork()
    if child == 0:
        for act in (lambda: member.put(0, b"x"), member.events, message.release, weft.join):
            assert refusal(act).code == "usage"
        # With all that the interpreter does at its end.
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    message.release()
    member.put(member.rank, b"still a member")
    taken(member).release()
    print("forked")


def test_a_forked_child_is_refused_and_does_no_harm(place: Path) -> None:
    assert run_well(place, forks).said(0) == ["forked"]


def waits_in_a_thread() -> None:
    member = weft.join()
    got: list[bytes] = []

    def wait() -> None:
        with taken(member) as message:
            got.append(bytes(message.payload))

    thread = threading.Thread(target=wait)
    thread.start()
    # Only where the other thread waits without the interpreter's lock.
    member.put(member.rank, b"while you wait")
    thread.join()
    assert got == [b"while you wait"]
    print("waited")


def test_a_call_that_waits_lets_other_threads_run(place: Path) -> None:
    assert run_well(place, waits_in_a_thread).said(0) == ["waited"]


def is_interrupted() -> None:
    member = weft.join()

    def handle(_number: int, _frame: object) -> None:
        raise InterruptedError("by a handler")

    signal.signal(signal.SIGALRM, handle)
    begun = time.monotonic()
    for wait in (member.take, member.deliver, member.next_event):
        member.events()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError):
            while True:
                wait(timeout=30)
    assert time.monotonic() - begun < 20
    print("interrupted")


def test_a_handler_of_a_signal_ends_a_wait(place: Path) -> None:
    assert run_well(place, is_interrupted).said(0) == ["interrupted"]


def leaves_with_messages_under_way() -> None:
    member, other = join()
    if member.rank == 0:
        # In the middle of a wait when the interpreter ends.
        threading.Thread(target=lambda: member.take(timeout=60), daemon=True).start()
        for number in range(200):
            member.put(other, number.to_bytes(4, "little"))
        sys.exit(0)
    for number in range(200):
        with taken(member) as message:
            assert int.from_bytes(message.payload, "little") == number
    print("all of them")


def test_an_interpreter_that_exits_flushes_what_was_put(place: Path) -> None:
    assert run_well(place, leaves_with_messages_under_way).said(1) == ["all of them"]


def serves_an_event_loop() -> None:
    member = weft.join()

    async def serve() -> bytes:
        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(member.fileno(), arrived.set)
        loop.call_later(0.05, member.put, member.rank, b"by the descriptor")
        while True:
            await asyncio.wait_for(arrived.wait(), 20)
            arrived.clear()
            member.events()
            if message := member.take():
                with message:
                    return bytes(message.payload)

    assert asyncio.run(serve()) == b"by the descriptor"
    print("served")


def test_a_member_has_a_descriptor_for_an_event_loop(place: Path) -> None:
    assert run_well(place, serves_an_event_loop).said(0) == ["served"]


def counts() -> None:
    member, other = join()
    record = int.from_bytes(member.saved() or b"\0", "little")
    if member.incarnation == 1:
        member.save((41).to_bytes(2, "little"))
        if member.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    else:
        assert record == 41
    member.put(other, b"counted", timeout=20)
    taken(member).release()
    print("record", record)


def test_a_record_outlives_the_program(place: Path) -> None:
    ended = run_well(place, counts)
    assert ended.said(1) == ["record 41"]
