"""What speaks to a team's PostgreSQL, and how to have it."""

from __future__ import annotations

import os
import shlex
import sys

from resume_hooks.system.plugin_files import CHECKOUT

DRIVER = "psycopg"
"""The package."""


def how_to_add() -> str:
    """What adds it to the Python that runs this: the plugin's own venv has no other way in."""
    if os.path.isfile(os.path.join(sys.prefix, "requirements.lock")):
        return f"Install it: sh {shlex.quote(os.path.join(CHECKOUT, 'hooks', 'engine'))} --install --team"
    return f"Install it: {shlex.quote(sys.executable)} -m pip install '{DRIVER}[binary]>=3.2'"
