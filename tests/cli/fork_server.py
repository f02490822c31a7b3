"""Run the command line and hook scripts in forks of a process that has imported all modules.

Some tests need a new process instead: tests/test_import_budget.py, tests/hook_scripts, and every
test that sets an environment variable for Python.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from typing import NoReturn

import resume_hooks

LATE_IMPORTED_MODULE_NAMES = ("rich.console", "rich.table", "rich.tree", "sqlite3")
"""Modules that the engine imports only when it needs them. The fork server imports them at its
start."""

MAX_REQUEST_BYTES = 1_000_000
"""Maximum size of a request in bytes. A request is one packet."""


class ForkServer:
    """A server process that has imported the engine and creates a fork of itself for each run."""

    def __init__(self, source: str, repository: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_REQUEST_BYTES)
        environ = {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"{source}:{repository}",
            "HOME": "/dev/null/none",
        }
        command = [sys.executable, "-m", "tests.cli.fork_server", str(theirs.fileno())]
        self._process = subprocess.Popen(command, env=environ, pass_fds=[theirs.fileno()], cwd="/")
        theirs.close()
        self._socket = ours
        self._idle = threading.Lock()

    def run(
        self,
        words: tuple[str, ...],
        environ: dict[str, str],
        stdin: bytes,
        cwd: str,
        timeout: float,
        script: str = "",
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the command line, or ``script``, and return the completed process.

        Raises RuntimeError if another run has not ended yet.
        """
        if not self._idle.acquire(blocking=False):
            raise RuntimeError(
                "it still runs something: what goes on at once is started by processes of its own"
            )
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(stdin)
            given.seek(0)
            self._socket.settimeout(timeout)
            request = json.dumps(
                {"words": words, "environ": environ, "cwd": cwd, "script": script}
            ).encode()
            socket.send_fds(self._socket, [request], [given.fileno(), out.fileno(), err.fileno()])
            code = int(self._socket.recv(64))
            out.seek(0)
            err.seek(0)
            self._idle.release()
            return subprocess.CompletedProcess(
                [script or "resume-hooks", *words], code, out.read(), err.read()
            )

    def close(self) -> None:
        """Close the connection, so that the server process ends."""
        self._socket.close()
        self._process.wait(timeout=30)


def _serve_requests(connection: socket.socket) -> None:
    ours = (found.name for found in pkgutil.walk_packages(resume_hooks.__path__, "resume_hooks."))
    for name in (*LATE_IMPORTED_MODULE_NAMES, *ours):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # Without this, a garbage collection in a fork would copy all pages of the imported modules.
    while True:
        request, streams, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, 3)
        if not request:
            return
        child = os.fork()
        if not child:
            connection.close()
            _run_in_child(json.loads(request), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run_in_child(request: dict[str, object], streams: list[int]) -> NoReturn:
    """Set the fork's folder, environment and streams, run the command, and exit."""
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(request["environ"])  # type: ignore[call-overload]
        os.chdir(str(request["cwd"]))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            errors = (
                "backslashreplace"
                if name == "stderr"
                else "surrogateescape"
                if name == "stdin"
                else "strict"
            )
            setattr(sys, name, open(number, mode, encoding="utf-8", errors=errors, closefd=False))  # noqa: SIM115
        script = str(request["script"])
        sys.argv = [script or "resume-hooks", *request["words"]]  # type: ignore[misc]
        if script:
            runpy.run_path(script, run_name="__main__")
        else:
            from resume_hooks.__main__ import start

            start()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001 - a process that fails prints its trace and ends with 1
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve_requests(socket.socket(fileno=int(sys.argv[1])))
