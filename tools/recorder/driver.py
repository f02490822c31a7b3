"""Run the entry points of a checkout with a frozen clock and numbered ids.

``TREE/.venv/bin/python -s -P driver.py TREE`` starts this program. It loads the engine, and forks a
process for each step. A request is a line of JSON on stdin, and its answer is an exit code on
stdout. Only the standard library is used, because the program runs with the Python of any recorded
checkout.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime as dt
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import sys
import time
import traceback
import uuid
from typing import Any, NoReturn, SupportsIndex

FROZEN_TIME = 1_811_851_200.0
"""The time that the clock always shows: noon of 2027-06-01 in UTC. It is later than any recorded
session."""

SLOWDOWN_FACTOR = 20
"""The clock for time limits is slowed down by this factor, so that a busy machine does not change
the record. A sleep ends immediately and advances this clock, so that no step really waits."""

LAZILY_IMPORTED_MODULES = ("rich.console", "rich.table", "rich.tree", "sqlite3")
"""Modules of other packages that the engine imports only when it needs them."""

ENGINE_MODULE = "resume_hooks"


def freeze_clock() -> None:
    """Stop every clock that shows a date. The clock that measures time limits continues, but slowly."""
    local, universal, monotonic = time.localtime, time.gmtime, time.monotonic
    setitimer, alarm, sleep = signal.setitimer, signal.alarm, time.sleep
    slept = [0.0]

    def advance_clock(seconds: float | SupportsIndex) -> None:
        slept[0] += float(seconds)
        sleep(float(seconds) / SLOWDOWN_FACTOR)

    time.time = lambda: FROZEN_TIME
    time.time_ns = lambda: int(FROZEN_TIME) * 1_000_000_000
    time.localtime = lambda seconds=FROZEN_TIME: local(seconds)
    time.gmtime = lambda seconds=FROZEN_TIME: universal(seconds)
    time.sleep = advance_clock
    time.monotonic = lambda: monotonic() / SLOWDOWN_FACTOR + slept[0]
    time.perf_counter = lambda: 0.0
    time.process_time = lambda: 0.0
    signal.setitimer = lambda which, seconds, interval=0.0: setitimer(
        which, seconds * SLOWDOWN_FACTOR, interval * SLOWDOWN_FACTOR
    )
    signal.alarm = lambda seconds: alarm(seconds * SLOWDOWN_FACTOR)
    # A subclass would not work, because serializers accept only the exact type. The type's own
    # table is behind a read-only view.
    methods = gc.get_referents(dt.datetime.__dict__)[0]
    methods["now"] = classmethod(frozen_now)
    methods["utcnow"] = classmethod(frozen_now)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(dt.datetime))
    if dt.datetime.now(dt.UTC).timestamp() != FROZEN_TIME:
        raise SystemExit("The clock of this Python can't be frozen.")


def frozen_now(cls: type[dt.datetime], zone: dt.tzinfo | None = None) -> dt.datetime:
    """Return the frozen time. This function replaces ``datetime.now``."""
    return cls.fromtimestamp(FROZEN_TIME, zone)


def number_new_ids(first_number: int) -> None:
    """Number new ids from ``first_number`` on, instead of drawing them at random.

    ``home.py`` numbers them again in the order in which they appear.
    """
    drawn = {"ids": first_number, "bytes": 0}

    def make_counted_id() -> uuid.UUID:
        drawn["ids"] += 1
        return uuid.UUID("f0f{0:05x}-0000-4000-8000-{0:012x}".format(drawn["ids"]))

    def make_counted_bytes(size: int) -> bytes:
        drawn["bytes"] += 1
        return drawn["bytes"].to_bytes(max(size, 4), "big")[-size:] if size else b""

    uuid.uuid4 = make_counted_id
    os.urandom = make_counted_bytes


def load_engine(source: str) -> None:
    """Load every module of the engine, so that the forked processes need not load them.

    If a module fails to load, the step that needs it fails.
    """
    sys.path.insert(0, source)
    package = importlib.import_module(ENGINE_MODULE)
    found = [module.name for module in pkgutil.walk_packages(package.__path__, f"{ENGINE_MODULE}.")]
    for name in (*LAZILY_IMPORTED_MODULES, *found):
        if name.endswith("__main__"):
            continue
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def serve() -> None:
    """Run each requested step in a process of its own, and print the process's exit code."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            run_step(json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def run_step(request: dict[str, Any]) -> NoReturn:
    """Run one step in this process: set its folder, environment and streams, then call the entry point."""
    code = 1
    try:
        redirect_streams(request)
        os.environ.clear()
        os.environ.update(request["environ"])
        os.chdir(request["cwd"])
        number_new_ids(request["first_id"])
        script = request["script"]
        sys.argv = [script or "resume-hooks", *request["words"]]
        if script:
            runpy.run_path(script, run_name="__main__")
        else:
            runpy.run_module(ENGINE_MODULE, run_name="__main__", alter_sys=False)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001 - a process that fails prints its trace and ends with 1
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def redirect_streams(request: dict[str, Any]) -> None:
    """Redirect the three standard streams to the files that a request names."""
    given = os.open(request["stdin"], os.O_RDONLY)
    output = os.open(request["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    errors = os.open(request["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number, descriptor in enumerate((given, output, errors)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), "utf-8", "surrogateescape")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")), "utf-8")
    sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "w")), "utf-8", "backslashreplace")


if __name__ == "__main__":
    freeze_clock()
    load_engine(os.path.join(sys.argv[1], "src"))
    serve()
