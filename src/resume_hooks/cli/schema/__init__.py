"""The documented schemas of ``--json``. ``ArchiveSchema`` is the schema of ``archive``, for example.

Every answer is validated before it is printed, and an answer that does not match its schema is
reported as a bug. The files in docs/schema are generated from these classes.
"""

from __future__ import annotations

import importlib
from typing import Any

from pydantic import BaseModel

from resume_hooks.cli.verb_table import schema_class_prefix, schema_module_name


def schema_of_verb(verb: str) -> type[BaseModel]:
    """Return the schema class of a verb's data."""
    form: type[BaseModel] = getattr(
        importlib.import_module(schema_module_name(verb)), f"{schema_class_prefix(verb)}Schema"
    )
    return form


def validate_data(verb: str, data: object) -> dict[str, Any]:
    """Return ``data`` as a dictionary that matches the verb's schema. Raise ValidationError otherwise.

    ``data`` may contain dictionaries and the objects of our own classes.
    """
    plain: dict[str, Any] = schema_of_verb(verb).model_validate(data).model_dump(mode="json")
    return plain
