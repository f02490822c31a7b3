"""``python -m resume_hooks``: the command line."""

from __future__ import annotations

from resume_hooks.cli.main import main

main()
