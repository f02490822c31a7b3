"""What Codex's tools did, in the tools that everything above knows: commands, edits of files, plans, pictures.

A command is ``Bash``, a patch an ``Edit`` or ``Write`` for each file, a plan ``TodoWrite``; any
other tool keeps its name. In code mode a script that calls one tool counts as that call, one that
runs several commands as these, any other as ``exec`` with its ``code``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from resume_hooks.parts.codex.transcripts.items import HOSTED, arguments, kind
from resume_hooks.transcripts.records import Record, objects, string

SHELLS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "container.exec"})
CODE = "exec"  # the tool whose input is a script that calls the others
PATCH = "*** Begin Patch"
MAX_FILES = 200  # files of a patch

_CALLED = re.compile(r"\btools\.(\w{1,80})")
_COMMAND = re.compile(r'\(\s*\{\s*"?cmd"?\s*:\s*("(?:[^"\\]|\\.)*+")')
_WORKDIR = re.compile(r'\bworkdir"?\s*:\s*("(?:[^"\\]|\\.)*+")')
_PATCH_TEXT = re.compile(r'"\*\*\* Begin Patch(?:[^"\\]|\\.)*+"')
_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_MOVED = re.compile(r"^\*\*\* Move to: (.+)$", re.MULTILINE)
_WRAPPED = re.compile(r"(?:ba|z|da)?sh")


class Use(NamedTuple):
    """A use of a tool: its name, and what it was given."""

    name: str
    given: Record


def uses_of_call(item: Record) -> list[Use]:
    """What a call did, at least one use; several where it changed several files, or ran several commands."""
    if kind(item) in {"local_shell_call", "tool_search_call", *HOSTED}:
        name = kind(item).removesuffix("_call")
    else:
        space = string(item, "namespace")
        if space:
            name = f"{space.removesuffix('__')}__{string(item, 'name')}"
        else:
            name = string(item, "name")
    given = arguments(item)
    if name == CODE and "input" in given:
        code = string(given, "input")
        commands = _commands_of_code(code)
        if len(commands) > 1:
            return [_use_of_shell(command) for command in commands]
        name, given = _use_of_code(code, commands)
    return _uses_of_tool(name, given)


def _uses_of_tool(name: str, given: Record) -> list[Use]:
    """What a tool did, by its own name for it."""
    if name in SHELLS:
        name, given = _use_of_shell(given)
    if name == "apply_patch":
        patch = string(given, "input") or string(given, "patch")
        return list(_uses_of_patch(patch)) or [Use(name, given)]
    if name == "update_plan":
        rows = []
        for row in objects(given.get("plan")):
            rows.append({"content": string(row, "step"), "status": string(row, "status")})
        return [Use("TodoWrite", {"todos": rows})]
    if name == "view_image":
        return [Use("Read", {"file_path": string(given, "path")})]
    if name == "request_user_input":
        return [Use("AskUserQuestion", given)]
    return [Use(name, given)]


def _commands_of_code(code: str) -> list[Record]:
    """The commands of a script that calls nothing but the shell, as they were given; none if one is not a literal."""
    called = _CALLED.findall(code)
    if not called or {*called} != {"exec_command"}:
        return []
    commands: list[Record] = []
    for call in code.split("tools.exec_command")[1:]:
        typed = _COMMAND.match(call)
        command = _parse_literal(typed[1]) if typed else ""
        if not command:
            return []
        folder = _WORKDIR.search(call)
        if folder is None:
            commands.append({"cmd": command})
        else:
            commands.append({"cmd": command, "workdir": _parse_literal(folder[1])})
    return commands


def _use_of_code(code: str, commands: list[Record]) -> Use:
    if commands:
        return Use("exec_command", commands[0])
    if (
        _CALLED.findall(code) == ["apply_patch"]
        and (match := _PATCH_TEXT.search(code))
        and (patch := _parse_literal(match[0]))
    ):
        return Use("apply_patch", {"input": patch})
    return Use(CODE, {"code": code})


def _parse_literal(text: str) -> str:
    """What a literal of a script says; ``""`` for one that JSON does not know."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    if isinstance(value, str):
        return value
    return ""


def _use_of_shell(given: Record) -> Use:
    """A command as a shell's line, whatever form it was given in.

    A patch that was given to a shell is one.
    """
    command = given.get("cmd", given.get("command"))
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
        if words[:1] == ["apply_patch"] and len(words) == 2:
            return Use("apply_patch", {"input": words[1]})
        if (
            len(words) == 3
            and _WRAPPED.fullmatch(words[0].rpartition("/")[2])
            and words[1] in {"-lc", "-c"}
        ):
            words, command = [], words[2]
        else:
            command = shlex.join(words)
    if not isinstance(command, str):
        return Use("Bash", given)
    if command.lstrip().startswith("apply_patch") and PATCH in command:
        return Use("apply_patch", {"input": command[command.index(PATCH) :]})
    rest = {}
    for key, value in given.items():
        if key in {"workdir", "justification"}:
            rest[key] = value
    return Use("Bash", {"command": command, **rest})


def _uses_of_patch(patch: str) -> Iterator[Use]:
    found = list(_FILE.finditer(patch))[:MAX_FILES]
    for place, match in enumerate(found):
        if place + 1 < len(found):
            end = found[place + 1].start()
        else:
            end = len(patch)
        body = patch[match.end() : end].partition("\n*** End Patch")[0]
        path, lines = match[2].strip(), body.split("\n")[1:]
        if match[1] == "Add":
            yield Use(
                "Write",
                {
                    "file_path": path,
                    "content": "\n".join(line[1:] for line in lines if line[:1] == "+"),
                },
            )
            continue
        moved = _MOVED.search(body)
        old = "\n".join(line[1:] for line in lines if line[:1] in {"-", " "})
        new = "\n".join(line[1:] for line in lines if line[:1] in {"+", " "})
        given = {"file_path": path, "old_string": old, "new_string": new}
        yield Use("Edit", given | ({"destination": moved[1].strip()} if moved else {}))
