"""Failed attempts that were tried again with success: their error, and what they were given."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick, Rule


def choose(material: Material, options: Options) -> Iterator[Pick]:  # noqa: ARG001 - the form of every rule
    """Every piece of a failed call after which the same tool succeeded on the same file, command or address."""
    succeeded: dict[tuple[str, str], int] = {}
    for call_id, call in material.calls.items():
        if call.target and call_id in material.answered and call_id not in material.failed:
            key = call.tool, call.target
            succeeded[key] = max(material.places[call.number], succeeded.get(key, 0))
    for call_id, failed in material.calls.items():
        again = succeeded.get((failed.tool, failed.target), -1) > material.places[failed.number]
        if call_id not in material.failed or not again:
            continue
        for piece in material.by_call.get(call_id, ()):
            yield Pick(piece, "failed, and was done again with success")


RULE = Rule("failures", "failed attempts that later succeeded", choose)
