"""What a member does for the tasks of its node: votes, phases, notices."""

from pathlib import Path

import weft
from conftest import run_well

TASK = '[[task]]\nname = "{}"\nnodes = [{}]\nprogram = "sleep"\nargs = ["1000"]\n'
TASKS = "".join(TASK.format(*it) for it in [("north", 0), ("actuator", 0), ("south", 1)])
SCRIPT = """DEFINE 0 = MANAGER
DEFINE 1 = BACKUP
TASK 1 IS "north" ON NODE 0
TASK 2 IS "south" ON NODE 1
TASK 3 IS "actuator" ON NODE 0
N-VERSION 1
    VERSION 1 IS T1 TIMEOUT 1000 S
    VERSION 2 IS T2 TIMEOUT 1000 S
    VOTING ALGORITHM IS MAJORITY
    ON SUCCESS T3
END N-VERSION
IF [ PHASE(T1) == 3 ] THEN
    SEND 7 T2
FI
"""


def votes() -> None:
    member = weft.join()
    other = 1 - member.rank
    # A round waits for no version whose node is not a member yet.
    while not (member.view and member.view.incarnation(1 - member.rank)):
        assert member.wait(timeout=20)
        member.events()
    member.put(other, b"here", timeout=20)
    first = member.take(timeout=20)
    assert first is not None
    first.release()
    member.vote(["north", "south"][member.rank], 1, 41)
    if member.rank == 0:
        [outcome] = member.notices("actuator", timeout=20)
        assert (outcome.kind, outcome.round, outcome.number) == ("outcome", 1, 41)
        assert outcome.agreed == outcome.voters == [1, 2] and outcome.about is None
        assert member.notices("actuator") == []
        # Until the task runs it has no phase.
        while not (seen := member.take(timeout=0.01)):
            member.report_phase("north", 3)
        seen.release()
    else:
        [sent] = member.notices("south", timeout=20)
        assert (sent.kind, sent.number, sent.round) == ("number", 7, None)
        member.put(other, b"seen", timeout=20)
    print("voted")


def test_members_vote_for_tasks_and_are_sent_what_the_script_has_for_them(place: Path) -> None:
    (place / "c.rl").write_text(SCRIPT)
    ended = run_well(place, votes, more=f'[recovery]\nscript = "c.rl"\n{TASKS}')
    assert ended.said(0) == ended.said(1) == ["voted"]
