"""Create a scripted program ``claude`` on PATH, which replaces the client as a headless model.

The program saves its arguments, environment, folder and input, and then runs a few lines of Python.
"""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any, NamedTuple

_STAND_IN_PROGRAM_FORMAT = """\
#!{python} -I
import json, os, signal, subprocess, sys, time
text = sys.stdin.read()
call = len(os.listdir({calls!r}))
kept = {{"argv": sys.argv[1:], "environ": dict(os.environ), "folder": os.getcwd(), "files": os.listdir(), "text": text}}
written = os.path.join({folder!r}, f"call-{{os.getpid()}}")
with open(written, "w") as stream:
    json.dump(kept, stream)
os.rename(written, os.path.join({calls!r}, f"{{call}}.json"))

def result(answer=None, **fields):
    usage = {{"input_tokens": 1000, "cache_read_input_tokens": 200, "output_tokens": 50}}
    row = {{"type": "result", "subtype": "success", "is_error": False, "result": "", "usage": usage,
           "total_cost_usd": 0.0125, "modelUsage": {{"haiku-of-the-day": {{"outputTokens": 50}}}}}}
    print(json.dumps({{**row, **({{"structured_output": answer}} if answer is not None else {{}}), **fields}}))

{body}
"""


class StandIn(NamedTuple):
    """A stand-in for the client.

    ``folder`` is the folder for PATH. ``calls_folder`` contains a file for each call.
    """

    folder: Path
    calls_folder: Path

    def calls(self) -> list[dict[str, Any]]:
        """Return the arguments, environment, folder, files and input of each call."""
        paths = sorted(self.calls_folder.iterdir(), key=lambda path: int(path.stem))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    @property
    def path(self) -> str:
        """Return a PATH that begins with the stand-in's folder."""
        return f"{self.folder}:/usr/bin:/bin"


def write_stand_in(root: Path, body: str) -> StandIn:
    """Write a program ``claude`` in ``root`` that runs the Python lines ``body``.

    ``body`` can use the input ``text``, the call's number ``call``, and ``result(answer)``.
    """
    made = StandIn(root / "stand-in" / "bin", root / "stand-in" / "calls")
    for folder in made:
        folder.mkdir(parents=True, exist_ok=True)
    script = made.folder / "claude"
    script.write_text(
        _STAND_IN_PROGRAM_FORMAT.format(
            python=sys.executable, folder=str(made.folder), calls=str(made.calls_folder), body=body
        ),
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return made
