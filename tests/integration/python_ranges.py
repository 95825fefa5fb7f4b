#!/usr/bin/env python3
"""occtrace.range() of a Python program under "occtrace --nvtx" on the simulated device: launches have the ranges of their thread.

    python_ranges.py BUILD SOURCE            the test
    python_ranges.py launch IMAGE KERNEL     the program: launches a kernel by the driver's interface, without any package of NVTX
"""
import ctypes
import os
import subprocess
import sys
import tempfile

STEPS = 6


def check(result):
    if result != 0:
        sys.exit(f"the driver returns {result}")


def launch(image, kernel):
    import occtrace
    cuda, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p
    context, module, function, buffer = pointer(), pointer(), pointer(), pointer()
    check(cuda.cuInit(0))
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
    check(cuda.cuModuleLoad(ctypes.byref(module), image.encode()))
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, kernel.encode()))
    check(cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(1 << 20)))
    n = ctypes.c_uint(256)
    arguments = (pointer * 4)(*map(ctypes.addressof, (buffer, buffer, buffer, n)))
    for step in range(STEPS):
        with occtrace.range(f"step {step}"):
            with occtrace.range("attention"):
                check(cuda.cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, None, arguments, None))
            check(cuda.cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, None, arguments, None))
    check(cuda.cuCtxSynchronize())


def test(build, source):
    image = os.path.join(build, "tests/samples/images/hello.fatbin")
    for path in (image, os.path.join(build, "simgpu/libcuda.so.1")):
        if not os.path.exists(path):
            print("SKIP: no", path)
            sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        history = os.path.join(work, "h.db")
        environment = dict(os.environ, PYTHONPATH=os.path.join(source, "python"))
        traced = subprocess.run([os.path.join(source, "scripts/simgpu"), "--build", build, os.path.join(build, "bin/occtrace"), "--nvtx",
                                 "-d", history, sys.executable, "-B", __file__, "launch", image, "vector_add"],
                                env=environment, capture_output=True, text=True)
        sql = "SELECT range, count(*) FROM launch JOIN range USING (run_id, range_id) GROUP BY 1 ORDER BY 1"
        found = subprocess.run([os.path.join(build, "bin/occq"), "sql", "-d", history, "--csv", sql], capture_output=True, text=True)
        expected = ["step #,6", "step #/attention,6"]
        if traced.returncode != 0 or found.stdout.replace('"', "").splitlines()[1:] != expected:
            sys.exit(f"FAILED: {traced.returncode} {found.stdout}{found.stderr}{traced.stderr[-800:]}")


if sys.argv[1] == "launch":
    launch(*sys.argv[2:4])
else:
    test(*sys.argv[1:3])
