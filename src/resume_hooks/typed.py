"""How a user runs us: by name where that is installed, else by the launcher in the plugin's folder."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def typed(words: str, environ: Mapping[str, str]) -> str:
    """What runs us with ``words`` in the user's shell; who has but the plugin has no ``resume-hooks`` on PATH."""
    engine = os.path.join(_ROOT, "hooks", "engine")
    if shutil.which("resume-hooks", path=environ.get("PATH", "")) or not os.path.isfile(engine):
        return f"resume-hooks {words}"
    return f"sh {shlex.quote(engine)} {words}"
