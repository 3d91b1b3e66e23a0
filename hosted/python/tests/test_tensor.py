"""Tensors: as arrays of NumPy and by DLPack, without a copy."""

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy
import pytest
import safetensors.numpy
import weft
from conftest import run_well
from test_member import join, refusal, taken

POOL = "rendezvous.pool_mib = 4\n"


def received(member: weft.Member, edge: str, step: int = 0) -> weft.Tensor:
    tensor = member.receive(1 - member.rank, edge, step, timeout=30)
    assert tensor is not None
    return tensor


def exchanges() -> None:
    member, other = join()
    names = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64"
    for name in (names + " complex64 complex128").split():
        mine = (numpy.arange(24).reshape(2, 3, 4) * (member.rank + 1)).astype(name)
        member.send(other, name, 0, mine)
        theirs = (numpy.arange(24).reshape(2, 3, 4) * (other + 1)).astype(name)
        array = received(member, name).numpy()
        assert array.dtype == theirs.dtype and numpy.array_equal(array, theirs), name
    for shape in ((), (0, 3), (80_000,)):
        member.send(other, f"shape {shape}", 0, numpy.full(shape, 1.5, numpy.float32))
        tensor = received(member, f"shape {shape}")
        assert (tensor.dtype, tensor.shape) == ("f32", shape)
        assert numpy.array_equal(tensor.numpy(), numpy.full(shape, 1.5))
    member.put(other, b"done")
    taken(member).release()
    print("exchanged")


def test_arrays_of_every_type_are_exchanged(place: Path) -> None:
    ended = run_well(place, exchanges, more=POOL)
    assert ended.said(0) == ended.said(1) == ["exchanged"]


class Unversioned:
    """A tensor as a library sees it that asks for no version."""

    def __init__(self, tensor: weft.Tensor) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **_: Any) -> Any:
        return self.tensor.__dlpack__()


def shares() -> None:
    member = weft.join()
    member.send(member.rank, "x", 0, numpy.arange(1000, dtype=numpy.float32))
    tensor = member.receive(member.rank, "x", 0)
    assert tensor is not None and tensor.__dlpack_device__() == (1, 0)
    one, two, view = tensor.numpy(), numpy.from_dlpack(tensor), memoryview(cast(Any, tensor))
    assert numpy.shares_memory(one, two) and numpy.shares_memory(one, numpy.asarray(view))
    assert not one.flags.owndata and one.ctypes.data % 8 == 0
    for array in (one, two, view):
        with pytest.raises((ValueError, TypeError)):
            array[0] = 7
    copied = numpy.from_dlpack(Unversioned(tensor))
    assert not numpy.shares_memory(one, copied) and numpy.array_equal(one, copied)
    assert numpy.from_dlpack(tensor, copy=True).flags.writeable
    # Not consumed: freed by the capsule.
    tensor.__dlpack__(), tensor.__dlpack__(max_version=(1, 0))
    for _ in range(100):
        numpy.from_dlpack(tensor)
    del tensor, view, one
    gc.collect()
    assert two[0] == 0 and two[999] == 999
    saved = safetensors.numpy.save({"x": two})
    assert numpy.array_equal(safetensors.numpy.load(saved)["x"], two)
    print("shared")


def test_arrays_share_the_memory_of_a_tensor_and_keep_it(place: Path) -> None:
    assert run_well(place, shares, more=POOL).said(0) == ["shared"]


class Bfloat16:
    """An array that NumPy has no type for, and DLPack has."""

    def __init__(self, bits: "numpy.ndarray[Any, Any]") -> None:
        self.bits = bits

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self) -> object:
        capsule = self.bits.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # The code of the type: behind the pointer, the device and the number of dimensions.
        ctypes.memset(pointer(capsule, b"dltensor") + 20, 4, 1)
        return capsule


def lends_by_dlpack() -> None:
    member = weft.join()
    bits = numpy.arange(6, dtype=numpy.uint16).reshape(2, 3)
    member.send(member.rank, "bf16", 0, Bfloat16(bits))
    tensor = member.receive(member.rank, "bf16", 0, dtype="bf16", shape=(2, 3))
    assert tensor is not None and tensor.dtype == "bf16"
    assert refusal(tensor.numpy).code == "usage"
    member.send(member.rank, "again", 0, tensor)
    again = member.receive(member.rank, "again", 0)
    assert again is not None and (again.dtype, again.shape) == ("bf16", (2, 3))
    print("lent")


def test_types_that_numpy_lacks_go_by_dlpack(place: Path) -> None:
    assert run_well(place, lends_by_dlpack, more=POOL).said(0) == ["lent"]


class Elsewhere:
    """An array on another device."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, **_: Any) -> object:
        raise AssertionError("not asked")


def is_refused() -> None:
    member = weft.join()
    me, array = member.rank, numpy.zeros((4, 4), numpy.float32)
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("usage", lambda: member.send(me, "x", 0, array.T[1:])),
        ("usage", lambda: member.send(me, "x", 0, array.astype(">f4"))),
        ("usage", lambda: member.send(me, "x", 0, array.astype("U3"))),
        ("usage", lambda: member.send(me, "x", 0, [1.0, 2.0])),
        ("usage", lambda: member.send(me, "x", 0, Elsewhere())),
        ("usage", lambda: member.send(me, "x", 0, numpy.zeros((1,) * 9))),
        ("usage", lambda: member.receive(me, "x", 0, dtype="f33")),
        ("usage", lambda: member.receive(me, "x", 0, shape=(1,))),
        ("key", lambda: member.send(me, "a;b", 0, array)),
        ("node_out_of_range", lambda: member.send(9, "x", 0, array)),
        ("timeout", lambda: member.receive(me, "never", 0, timeout=0.1)),
    ]
    for code, act in cases:
        assert refusal(act).code == code
    offer = member.send(me, "x", 0, array)
    assert refusal(lambda: member.receive(me, "x", 0, dtype="f64")).code == "usage"
    assert member.receive(me, "x", 0, dtype="f32", shape=[4, 4]) is not None
    while not any(event.kind == "consumed" and event.offer == offer for event in member.events()):
        assert member.wait(timeout=20)
    # Longer than the pool: it is sealed, and goes as it is.
    long = numpy.arange(1 << 20)
    member.send(me, "long", 0, long)
    copy = member.receive(me, "long", 0)
    assert copy is not None and (copy.numpy() == long).all()
    member.send_dead(me, "x", 1)
    assert member.receive(me, "x", 1) is None
    member.clean_step(1)
    assert refusal(lambda: member.send(me, "x", 1, array)).code == "step_over"
    full = refusal(lambda: [member.send(me, "x", 2, numpy.zeros(1 << 17), 0.1) for _ in range(9)])
    assert full.code == "store_full"
    print("refused")


def test_what_cannot_be_sent_or_received_says_why(place: Path) -> None:
    assert run_well(place, is_refused, more=POOL).said(0) == ["refused"]
