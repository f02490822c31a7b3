"""The documented schemas of ``--json``. A verb's schema is ``<Verb>Schema`` in the module of its family.

An answer that does not match its verb's schema is a bug, which is raised before a program reads the
answer. docs/schema/ is generated from the schemas.
"""

from __future__ import annotations

import importlib
from typing import Any

from pydantic import BaseModel

from resume_hooks.cli.verb_table import class_prefix, schema_module


def schema_of_verb(verb: str) -> type[BaseModel]:
    """Return the documented schema of a verb's data."""
    form: type[BaseModel] = getattr(
        importlib.import_module(schema_module(verb)), f"{class_prefix(verb)}Schema"
    )
    return form


def validate_data(verb: str, data: object) -> dict[str, Any]:
    """Return ``data`` in its verb's schema. The data may contain our own values and dictionaries."""
    plain: dict[str, Any] = schema_of_verb(verb).model_validate(data).model_dump(mode="json")
    return plain
