"""The documented forms of ``--json``: the form of a verb is ``<Verb>Form`` in the module that its name leads to.

A verb whose answer does not fit its form is a bug, found before a program reads it. docs/schema/ is made from them.
"""

from __future__ import annotations

import importlib
from typing import Any

from pydantic import BaseModel

from resume_hooks.seam import form_module

MODULES = {
    "resume": ("resume", "continue"),
    "children": (
        "handoff", "rollover", "trim", "fork", "untrim",
    ),
    "sessions": ("sessions", "lineage", "find-original", "find-derived", "info", "resolve", "rename", "tag"),
    "archives": ("delete", "archive", "restore"),
    "reading": ("outline", "read"),
    "search": ("search", "index"),
    "doctor": ("doctor",),
    "upkeep": ("fsck", "config", "completion", "install", "uninstall"),
}  # fmt: skip
"""The core's verbs by the module of their forms. A call loads one, which imports the values that its verbs print."""


def form(verb: str) -> type[BaseModel]:
    """The documented form of a verb's data."""
    module = form_module(verb) or next(f"{__name__}.{name}" for name, verbs in MODULES.items() if verb in verbs)
    name = "".join(word.capitalize() for word in verb.split("-"))
    found: type[BaseModel] = getattr(importlib.import_module(module), f"{name}Form")
    return found


def checked(verb: str, data: object) -> dict[str, Any]:
    """``data`` as its verb's form has it, from values of ours and dictionaries."""
    plain: dict[str, Any] = form(verb).model_validate(data).model_dump(mode="json")
    return plain
