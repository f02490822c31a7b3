"""Find the files that are written by Python scripts in the here-documents of shell commands.

A file is only found if the script writes to a literal path, or to a variable whose last value is a
literal path. Computed paths are unknown.
"""

from __future__ import annotations

import re
from functools import lru_cache

from resume_hooks.reading.digest.shell import MAX_CACHED_COMMANDS, find_here_documents
from resume_hooks.redaction.lazy_patterns import compile_lazily

# This many characters at the start of a script are searched.
MAX_SCRIPT_CHARACTERS = 60_000
_STATEMENT_PATTERN = compile_lazily(
    r"^[ \t]*(?P<name>\w{1,60})[ \t]*=[ \t]*(?P<value>[^\n]{1,400})$|"
    r"^[ \t]*for[ \t]+(?P<each>\w{1,60})[ \t]+in[ \t]*[\[(](?P<values>[^\])]{1,4000})[\])][ \t]*:|"
    r"\bopen\([ \t]*(?P<opened>\w{1,60}|'[^'\n]{1,300}'|\"[^\"\n]{1,300}\")[ \t]*,[ \t]*(?:mode=)?['\"][wax]|"
    r"(?:\bPath\([ \t]*(?P<path>\w{1,60}|'[^'\n]{1,300}'|\"[^\"\n]{1,300}\")[ \t]*\){1,2}|\b(?P<object>\w{1,60}))"
    r"\.write_(?:text|bytes)\(",
    re.MULTILINE,
)
_PATH_LITERAL_PATTERN = compile_lazily(
    r"(?:(?:pathlib\.)?Path\([ \t]*)?(?:'([^'\n]{1,300})'|\"([^\"\n]{1,300})\")[ \t]*\)?[ \t]*"
)
_ANY_LITERAL_PATTERN = compile_lazily(r"'([^'\n]{1,300})'|\"([^\"\n]{1,300})\"")


@lru_cache(maxsize=MAX_CACHED_COMMANDS)
def find_files_written_by_scripts(command: str) -> tuple[str, ...]:
    """Return the paths that the scripts in a command write. No path is repeated."""
    if "<<" not in command or "write" not in command:
        return ()
    files: dict[str, None] = {}
    for document in find_here_documents(command):
        if "open(" in document or ".write_" in document:
            files.update(dict.fromkeys(_find_written_files(document[:MAX_SCRIPT_CHARACTERS])))
    return tuple(files)


def _find_written_files(script: str) -> list[str]:
    values: dict[str, list[str]] = {}
    paths: list[str] = []
    for statement in _STATEMENT_PATTERN.finditer(script):
        if statement["name"]:
            literal = _PATH_LITERAL_PATTERN.fullmatch(statement["value"].rstrip(" \t;"))
            values[statement["name"]] = [literal[1] or literal[2]] if literal else []
        elif statement["each"]:
            values[statement["each"]] = [
                single_quoted or double_quoted
                for single_quoted, double_quoted in _ANY_LITERAL_PATTERN.findall(
                    statement["values"]
                )
            ]
        else:
            target = statement["opened"] or statement["path"] or statement["object"]
            if target[0] in "'\"":
                paths.append(target[1:-1])
            else:
                paths += values.get(target, [])
    return paths
