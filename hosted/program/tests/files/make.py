"""Writes the files beside it, with numpy 2.4 and safetensors 0.8: `python make.py`."""

import pathlib

import ml_dtypes
import numpy
from numpy.lib import format as npy
from safetensors.numpy import save_file

here = pathlib.Path(__file__).parent
count = lambda *dims: numpy.arange(numpy.prod(dims, dtype=int)).reshape(dims)

arrays = {
    "b1": count(2, 2, 2, 1, 1, 1, 1, 2) % 3 == 0,
    "c16": count(3) * 1j + 0.5,
    "c8": (count(2) - 1j).astype("<c8"),
    "f2": count(5).astype("<f2"),
    "f4": count(2, 3).astype("<f4"),
    "f8": numpy.array(2.5),
    "i1": count(4).astype("i1") - 2,
    "i2": count(0, 4).astype("<i2"),
    "i4": count(1000).astype("<i4"),
    "i8": -count(2, 1),
    "u1": count(10, 26).astype("u1"),
    "u2": count(3).astype("<u2"),
    "u4": count(3).astype("<u4"),
    "u8": count(3).astype("<u8"),
}
for name, array in arrays.items():
    numpy.save(here / f"{name}.npy", array)
with open(here / "v2.npy", "wb") as file:
    npy.write_array(file, arrays["f4"], version=(2, 0))
with open(here / "v3.npy", "wb") as file:
    npy.write_array(file, arrays["f4"], version=(3, 0))

numpy.save(here / "bad-object.npy", numpy.array([{}, 1], dtype=object))
numpy.save(here / "bad-fields.npy", numpy.zeros(2, dtype=[("a", "<f4"), ("b", "<i2")]))
numpy.save(here / "bad-fortran.npy", numpy.asfortranarray(arrays["f4"]))
numpy.save(here / "bad-big.npy", arrays["f4"].astype(">f4"))
numpy.save(here / "bad-text.npy", numpy.array(["a", "bc"]))

del arrays["c16"]
arrays["bf16"] = count(3).astype(ml_dtypes.bfloat16)
arrays["f8_e4m3"] = count(3).astype(ml_dtypes.float8_e4m3fn)
arrays["f8_e5m2"] = count(3).astype(ml_dtypes.float8_e5m2)
save_file(arrays, here / "all.safetensors", metadata={"step": "7"})
save_file({"w": arrays["f4"]}, here / "one.safetensors")
