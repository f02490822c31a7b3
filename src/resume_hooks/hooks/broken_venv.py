"""A venv of the plugin's own that is there and does not load: it is marked, so that the installer builds it anew.

That happens where the system's Python moved on, or packages were removed. The mark is that the venv's copy of the lock
goes: without it no venv counts as whole. Standard library, Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Optional

from resume_hooks.paths import read_object

LOCK = "requirements.lock"


def mark() -> None:
    """Something of the engine could not be imported; marks the venv where it is the plugin's own that runs this."""
    venv = _venv()
    if venv and os.path.realpath(sys.prefix) == os.path.realpath(venv):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(venv, LOCK))


def is_marked() -> bool:
    """Whether the plugin's own venv was built, and does not count as whole any more."""
    venv = _venv()
    if venv is None or read_object(os.path.join(os.path.dirname(venv), "install.json")).get("state") != "ready":
        return False
    return os.path.isdir(venv) and not os.path.lexists(os.path.join(venv, LOCK))


def _venv() -> Optional[str]:
    data = os.environ.get("CLAUDE_PLUGIN_DATA")
    return os.path.join(data, "venv") if data else None
