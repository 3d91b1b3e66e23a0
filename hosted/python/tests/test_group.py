"""Groups: messages of any length, barriers and all-gathers."""

from pathlib import Path

import pytest
import weft
from conftest import run_well

GROUP = "[group]\ncount = 1\nblocks = 16\nblock_len = 4096\n"
LONG = bytes(range(256)) * 4096


def meets() -> None:
    member = weft.join()
    group = member.group("all")
    first = group.barrier(timeout=20)
    values = group.all_gather(str(member.rank).encode(), timeout=20)
    assert values == [str(rank).encode() for rank in range(member.size)]
    assert group.barrier(timeout=20) == first + 1
    with pytest.raises(weft.Error, match="pipe") as refused:
        group.set_topology("star")
    assert refused.value.code == "cluster_file"
    if member.rank == 0:
        group.set_topology("pipe")
        group.broadcast(b"short", tag=7, timeout=20)
        with pytest.raises(weft.Error) as raised:
            group.broadcast(LONG)
        assert raised.value.code == "message_too_long"
        group.begin(len(LONG), tag=8, timeout=20)
        rest = memoryview(LONG)
        while rest:
            rest = rest[group.write(rest, timeout=20) :]
    else:
        assert whole(group) == (0, 7, b"short")
        assert whole(group) == (0, 8, LONG)
    group.barrier(timeout=20)
    assert group.receive() is None
    print("met in", group.name)


def whole(group: weft.Group) -> tuple[int, int | None, bytes]:
    parts = bytearray()
    while True:
        part = group.receive(timeout=20)
        assert part is not None and part.kind == "part" and part.payload is not None
        assert part.offset == len(parts)
        parts += part.payload
        if part.is_last:
            assert part.message_len == len(parts)
            return part.root, part.tag, bytes(parts)


def test_a_group_meets_and_receives_messages_of_any_length(place: Path) -> None:
    ended = run_well(place, meets, nodes=3, more=GROUP)
    assert [ended.said(rank) for rank in range(3)] == [["met in all"]] * 3
