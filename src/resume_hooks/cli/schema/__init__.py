"""The documented forms of ``--json``: the form of a verb is ``<Verb>Form`` in the module that its name leads to.

A verb whose answer does not fit its form is a bug, found before a program reads it. docs/schema/ is
made from them.
"""

from __future__ import annotations

import importlib
from typing import Any

from pydantic import BaseModel

from resume_hooks.cli.verb_table import class_name, form_module


def form_of_verb(verb: str) -> type[BaseModel]:
    """The documented form of a verb's data."""
    found: type[BaseModel] = getattr(
        importlib.import_module(form_module(verb)), f"{class_name(verb)}Form"
    )
    return found


def check_data(verb: str, data: object) -> dict[str, Any]:
    """``data`` as its verb's form has it, from values of ours and dictionaries."""
    plain: dict[str, Any] = form_of_verb(verb).model_validate(data).model_dump(mode="json")
    return plain
