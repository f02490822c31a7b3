"""Convert the tool calls of Codex to those of Claude Code.

A command becomes ``Bash``, and an update of the plan becomes ``TodoWrite``. A patch becomes an
``Edit``, ``MultiEdit`` or ``Write`` for each file. In a converted request for the output of a
running command, the id of the command's task identifies the command. In code mode, Codex runs a
script that calls tools. If all inputs of these tools are literals, each call in the script is
converted. Otherwise, the whole script becomes one call of the tool ``exec``, whose input ``code``
is the script. Other tools keep their names.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from resume_hooks.parts.codex.transcripts.items import HOSTED_CALL_TYPES, call_arguments, item_type
from resume_hooks.transcripts.records import (
    KEYBOARD_TEXT_INPUT_NAME,
    POLL_TOOL,
    POLLED_TASK_FIELD,
    Record,
    get_string,
    list_objects,
)

SHELL_TOOL_NAMES = frozenset(
    {"exec_command", "shell", "shell_command", "local_shell", "container.exec"}
)
SCRIPT_TOOL_NAME = "exec"  # The tool that runs a script. The script can call other tools.
PLAN_TOOL_NAME = "update_plan"
PATCH_HEADER = "*** Begin Patch"
MAX_PATCH_FILES = 200  # Maximum number of files in a patch.

_TOOL_CALL_PATTERN = re.compile(r"\btools\.(\w{1,80})")
_COMMAND_CALL_PATTERN = re.compile(r'\(\s*\{\s*"?cmd"?\s*:\s*("(?:[^"\\]|\\.)*+")')
_POLL_CALL_PATTERN = re.compile(
    r'\(\s*\{\s*"?session_id"?\s*:\s*(\d{1,9})\b(?:\s*,\s*"?chars"?\s*:\s*("(?:[^"\\]|\\.)*+"))?'
)
_PLAN_STEP_PATTERN = re.compile(
    r'\{\s*"?step"?\s*:\s*("(?:[^"\\]|\\.)*+")\s*,\s*"?status"?\s*:\s*("\w{1,20}")'
)
_WORKDIR_ARGUMENT_PATTERN = re.compile(r'\bworkdir"?\s*:\s*("(?:[^"\\]|\\.)*+")')
_PATCH_TEXT_PATTERN = re.compile(r'"\*\*\* Begin Patch(?:[^"\\]|\\.)*+"')
_FILE_HEADER_PATTERN = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_MOVE_HEADER_PATTERN = re.compile(r"^\*\*\* Move to: (.+)$", re.MULTILINE)
_SHELL_CALL_PATTERN = re.compile(r"\s*(?:/\S*/)?(?:ba|z|da)?sh\s+-\w*c\s")
_POWERSHELL_PROGRAM_PATTERN = re.compile(r"(?:powershell|pwsh)(?:\.exe)?")
_PATCH_COMMAND_PATTERN = re.compile(r"\s*(?:cd\s+([^\s;&|]+)\s*&&\s*)?apply_patch\b[^\n]*\s*")
_SHELL_PROGRAM_PATTERN = re.compile(r"(?:ba|z|da)?sh")


class ToolUse(NamedTuple):
    """A tool use in Claude Code's form: the tool's name and its input."""

    name: str
    arguments: Record


def read_tool_uses(item: Record) -> list[ToolUse]:
    """Return the tool uses into which a call of Codex is converted.

    A patch becomes one tool use for each file. A script becomes one or more tool uses for each of
    its calls. Any other call becomes one tool use.
    """
    if item_type(item) in {"local_shell_call", "tool_search_call", *HOSTED_CALL_TYPES}:
        name = item_type(item).removesuffix("_call")
    else:
        namespace = get_string(item, "namespace")
        if namespace:
            name = f"{namespace.removesuffix('__')}__{get_string(item, 'name')}"
        else:
            name = get_string(item, "name")
    arguments = call_arguments(item)
    if name == SCRIPT_TOOL_NAME and "input" in arguments:
        return _convert_script(get_string(arguments, "input"))
    return _convert_call(name, arguments)


def _convert_call(name: str, arguments: Record) -> list[ToolUse]:
    """Return the tool uses into which a call of the Codex tool ``name`` is converted."""
    if name in SHELL_TOOL_NAMES:
        name, arguments = _convert_shell_call(arguments)
    if name == "apply_patch":
        patch = get_string(arguments, "input") or get_string(arguments, "patch")
        uses = []
        for use in _convert_patch(patch):
            uses.append(ToolUse(use.name, {**use.arguments, **_copy_workdir_argument(arguments)}))
        return uses or [ToolUse(name, arguments)]
    if name == PLAN_TOOL_NAME:
        rows = []
        for row in list_objects(arguments.get("plan")):
            rows.append({"content": get_string(row, "step"), "status": get_string(row, "status")})
        return [ToolUse("TodoWrite", {"todos": rows})]
    if name == POLL_TOOL and isinstance(session := arguments.get("session_id"), int):
        return [ToolUse(POLL_TOOL, {**arguments, POLLED_TASK_FIELD: str(session)})]
    if name == "wait" and (cell_id := get_string(arguments, "cell_id")):
        return [ToolUse(POLL_TOOL, {POLLED_TASK_FIELD: f"cell {cell_id}"})]
    if name == "view_image":
        return [ToolUse("Read", {"file_path": get_string(arguments, "path")})]
    if name == "request_user_input":
        return [ToolUse("AskUserQuestion", arguments)]
    return [ToolUse(name, arguments)]


def _convert_script(code: str) -> list[ToolUse]:
    """Return the tool uses into which a script is converted.

    If the script calls a tool that this module does not know, or if an input of a tool is not a
    literal, return one tool use with the whole script. If the script updates the plan, the update
    becomes the last tool use, because its output is printed after the outputs of the commands.
    """
    commands, polls, plan = (
        _parse_script_commands(code),
        _parse_polling_calls(code),
        _parse_plan_steps(code),
    )
    patches = [_parse_literal(text) for text in _PATCH_TEXT_PATTERN.findall(code)]
    literal_counts = Counter(
        {
            "exec_command": len(commands),
            POLL_TOOL: len(polls),
            "apply_patch": len(patches),
            PLAN_TOOL_NAME: 1 if plan else 0,
        }
    )
    call_counts = Counter(_TOOL_CALL_PATTERN.findall(code))
    if not call_counts or call_counts != literal_counts or "" in patches:
        return [ToolUse(SCRIPT_TOOL_NAME, {"code": code})]
    uses: list[ToolUse] = []
    for command in commands:
        uses += _convert_call("exec_command", command)
    for patch in patches:
        uses += _convert_call("apply_patch", {"input": patch})
    uses += [ToolUse(POLL_TOOL, poll) for poll in polls]
    if plan:
        uses += _convert_call(PLAN_TOOL_NAME, {"plan": plan})
    return uses


def _parse_script_commands(code: str) -> list[Record]:
    """Return the commands that a script runs, or [] if any of them is not a string literal."""
    commands: list[Record] = []
    for call in code.split("tools.exec_command")[1:]:
        command_match = _COMMAND_CALL_PATTERN.match(call)
        command = _parse_literal(command_match[1]) if command_match else ""
        if not command:
            return []
        folder_match = _WORKDIR_ARGUMENT_PATTERN.search(call)
        if folder_match is None:
            commands.append({"cmd": command})
        else:
            commands.append({"cmd": command, "workdir": _parse_literal(folder_match[1])})
    return commands


def _parse_polling_calls(code: str) -> list[Record]:
    """Return the inputs of the calls in which a script polls running commands.

    An input contains the session id of the command and the characters to type. Return [] if any of
    these ids is not a literal.
    """
    polls: list[Record] = []
    for call in code.split(f"tools.{POLL_TOOL}")[1:]:
        match = _POLL_CALL_PATTERN.match(call)
        if match is None:
            return []
        poll: Record = {POLLED_TASK_FIELD: match[1]}
        if typed_characters := _parse_literal(match[2] or ""):
            poll[KEYBOARD_TEXT_INPUT_NAME] = typed_characters
        polls.append(poll)
    return polls


def _parse_plan_steps(code: str) -> list[Record]:
    """Return the steps of the plan that a script sets, each with its status."""
    plan_call = code.partition(f"tools.{PLAN_TOOL_NAME}")[2]
    steps = []
    for step, status in _PLAN_STEP_PATTERN.findall(plan_call):
        steps.append({"step": _parse_literal(step), "status": _parse_literal(status)})
    return steps


def _parse_literal(text: str) -> str:
    """Return the value of a string literal in a script, or ``""`` if it is not valid JSON."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    if isinstance(value, str):
        return value
    return ""


def _convert_shell_call(arguments: Record) -> ToolUse:
    """Return a command as a ``Bash`` tool use, whichever format Codex used for the command.

    If the command is a shell command that applies a patch, return an ``apply_patch`` tool use.
    """
    command = arguments.get("cmd", arguments.get("command"))
    if isinstance(command, list):
        command_words = [word for word in command if isinstance(word, str)]
        if command_words[:1] == ["apply_patch"] and len(command_words) == 2:
            return ToolUse(
                "apply_patch", {"input": command_words[1], **_copy_workdir_argument(arguments)}
            )
        command = _find_shell_line(command_words) or shlex.join(command_words)
    elif isinstance(command, str) and _SHELL_CALL_PATTERN.match(command):
        command = _find_shell_line(_split_words(command)) or command
    if not isinstance(command, str):
        return ToolUse("Bash", arguments)
    before, header, patch = command.partition(PATCH_HEADER)
    applied = _PATCH_COMMAND_PATTERN.fullmatch(before)
    if header and applied is not None:
        folder = _copy_workdir_argument(arguments)
        if applied[1]:
            folder = {"workdir": posixpath.join(folder.get("workdir", ""), applied[1])}
        return ToolUse("apply_patch", {"input": f"{header}{patch}", **folder})
    options = {}
    for key, value in arguments.items():
        if key in {"workdir", "justification"}:
            options[key] = value
    return ToolUse("Bash", {"command": command, **options})


def _copy_workdir_argument(arguments: Record) -> dict[str, str]:
    """Return a dictionary with a call's working directory for its tool uses, or {} if the call has none."""
    folder = get_string(arguments, "workdir")
    if folder:
        return {"workdir": folder}
    return {}


def _find_shell_line(command_words: list[str]) -> str:
    """Return the command line that a shell is told to run, for example ``ls`` for ``bash -lc ls``.

    Return ``""`` if ``command_words`` do not start a shell, or if the shell gets more than one
    argument.
    """
    if len(command_words) > 2 and all(word.startswith("-") for word in command_words[1:-1]):
        program = command_words[0].replace("\\", "/").rpartition("/")[2].lower()
        option = command_words[-2].lower()
        if _SHELL_PROGRAM_PATTERN.fullmatch(program) and option.endswith("c"):
            return command_words[-1]
        if _POWERSHELL_PROGRAM_PATTERN.fullmatch(program) and option in {"-command", "-c"}:
            return command_words[-1]
    return ""


def _split_words(command: str) -> list[str]:
    """Return the words of a command line, or [] if its quotes are not closed."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _convert_patch(patch: str) -> Iterator[ToolUse]:
    headers = list(_FILE_HEADER_PATTERN.finditer(patch))[:MAX_PATCH_FILES]
    for index, match in enumerate(headers):
        if index + 1 < len(headers):
            end = headers[index + 1].start()
        else:
            end = len(patch)
        body = patch[match.end() : end].partition("\n*** End Patch")[0]
        path, lines = match[2].strip(), body.split("\n")[1:]
        if match[1] == "Add":
            yield ToolUse(
                "Write",
                {
                    "file_path": path,
                    "content": "\n".join(line[1:] for line in lines if line[:1] == "+"),
                },
            )
            continue
        move_match = _MOVE_HEADER_PATTERN.search(body)
        target = {"file_path": path}
        if move_match is not None:
            target["destination"] = move_match[1].strip()
        edits = _convert_hunks_to_edits(lines)
        if len(edits) == 1:
            yield ToolUse("Edit", target | edits[0])
        else:
            yield ToolUse("MultiEdit", {**target, "edits": edits})


def _convert_hunks_to_edits(lines: Sequence[str]) -> list[dict[str, str]]:
    """Return the old and the new text of each place that a patch changes in a file.

    The list has at least one element, even if the patch changes nothing.
    """
    hunks: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("@@"):
            hunks.append([])
        else:
            hunks[-1].append(line)
    edits: list[dict[str, str]] = []
    for hunk in hunks:
        old_text = "\n".join(line[1:] for line in hunk if line[:1] in {"-", " "})
        new_text = "\n".join(line[1:] for line in hunk if line[:1] in {"+", " "})
        if old_text or new_text:
            edits.append({"old_string": old_text, "new_string": new_text})
    return edits or [{"old_string": "", "new_string": ""}]
