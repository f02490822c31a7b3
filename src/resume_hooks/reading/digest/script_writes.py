"""The files that scripts in the here-documents of shell commands write, in Python and by literal names.

Only a write to a literal path counts, or to a variable that was last assigned one. What a script
computes is unknown.
"""

from __future__ import annotations

import re
from functools import lru_cache

from resume_hooks.reading.digest.shell import REMEMBERED, find_documents
from resume_hooks.redaction.lazy_patterns import compile_lazily

LONGEST = 60_000  # characters of a script that are searched
_STEP = compile_lazily(
    r"^[ \t]*(?P<name>\w{1,60})[ \t]*=[ \t]*(?P<value>[^\n]{1,400})$|"
    r"^[ \t]*for[ \t]+(?P<each>\w{1,60})[ \t]+in[ \t]*[\[(](?P<values>[^\])]{1,4000})[\])][ \t]*:|"
    r"\bopen\([ \t]*(?P<opened>\w{1,60}|'[^'\n]{1,300}'|\"[^\"\n]{1,300}\")[ \t]*,[ \t]*(?:mode=)?['\"][wax]|"
    r"(?:\bPath\([ \t]*(?P<path>\w{1,60}|'[^'\n]{1,300}'|\"[^\"\n]{1,300}\")[ \t]*\)|\b(?P<object>\w{1,60}))"
    r"\.write_(?:text|bytes)\(",
    re.MULTILINE,
)
_LITERAL = compile_lazily(
    r"(?:(?:pathlib\.)?Path\([ \t]*)?(?:'([^'\n]{1,300})'|\"([^\"\n]{1,300})\")[ \t]*\)?[ \t]*"
)
_LITERALS = compile_lazily(r"'([^'\n]{1,300})'|\"([^\"\n]{1,300})\"")


@lru_cache(maxsize=REMEMBERED)
def files_written_by_scripts(command: str) -> tuple[str, ...]:
    """Return the files that the scripts in a command write, as they name them, each once."""
    if "<<" not in command or "write" not in command:
        return ()
    found: dict[str, None] = {}
    for document in find_documents(command):
        if "open(" in document or ".write_" in document:
            found.update(dict.fromkeys(_files_written(document[:LONGEST])))
    return tuple(found)


def _files_written(script: str) -> list[str]:
    values: dict[str, list[str]] = {}
    written: list[str] = []
    for step in _STEP.finditer(script):
        if step["name"]:
            literal = _LITERAL.fullmatch(step["value"].rstrip(" \t;"))
            values[step["name"]] = [literal[1] or literal[2]] if literal else []
        elif step["each"]:
            values[step["each"]] = [
                one or other for one, other in _LITERALS.findall(step["values"])
            ]
        else:
            target = step["opened"] or step["path"] or step["object"]
            if target[0] in "'\"":
                written.append(target[1:-1])
            else:
                written += values.get(target, [])
    return written
