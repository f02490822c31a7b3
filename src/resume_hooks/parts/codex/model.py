"""Ask a model by running ``codex exec`` once.

The run has no shell, no MCP servers, no hooks and no web access, and it saves no session. As in
``HeadlessClaude``, the model must have no tool that runs or writes anything. In our measurements, Codex
0.104 to 0.169 rejected every call to such a tool as unsupported. If a run used a tool nevertheless,
its answer is discarded.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import time
import tomllib
from dataclasses import dataclass
from itertools import chain
from typing import Any

from resume_hooks.derive.model import port
from resume_hooks.derive.model.port import AnswerT, Reply
from resume_hooks.errors import HeadlessFailed
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_with_name
from resume_hooks.system import capture_output, programs
from resume_hooks.system.capture_output import CapturedOutput
from resume_hooks.transcripts.records import Record, get_mapping, get_string, parse_record

AGENT_NAME = "codex"

_DISABLED_FEATURES = (
    "shell_tool", "unified_exec", "shell_snapshot", "view_image", "image_generation", "web_search_request", "js_repl",
    "apps", "plugins", "hooks", "codex_hooks", "multi_agent", "collab", "goals", "tool_suggest", "sleep_tool",
    "code_mode_host", "skill_search", "memories", "computer_use", "browser_use", "in_app_browser",
)  # fmt: skip
"""Features of Codex that are turned off, because they add tools or run programs. Codex ignores the
names of features that it does not know."""

_FORCED_CODEX_SETTINGS = (
    'web_search="disabled"', "tools.web_search=false", "notify=[]", 'approval_policy="never"',
    "project_doc_max_bytes=0", 'history.persistence="none"', 'model_reasoning_effort="medium"',
)  # fmt: skip

_HARMLESS_ITEM_TYPES = frozenset({"agent_message", "reasoning", "error", "todo_list"})
_SERVER_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]+")
_SCHEMA_KEYWORDS = frozenset(
    {"type", "properties", "items", "anyOf", "enum", "const", "description", "$defs", "$ref"}
)
"""The keywords of JSON schemas that the API supports in structured outputs."""

_OUTER_SESSION_VARIABLES = frozenset(
    {"CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION"}
)


@dataclass(frozen=True, slots=True)
class CodexExec:
    """Asks a model through the ``codex`` program on PATH.

    ``model_option`` is passed to the program as ``--model``. If it is ``""``, Codex uses the model
    in the user's settings.
    """

    where: Where
    model_option: str

    @property
    def name(self) -> str:
        """The model's name in messages to the user: the model that the user chose, or else the agent's name."""
        return self.model_option or AGENT_NAME

    @property
    def is_installed(self) -> bool:
        """Whether Codex is installed."""
        return agent_with_name(AGENT_NAME, self.where).launch_command("").program_path is not None

    def ask(
        self, instructions: str, text: str, answer_type: type[AnswerT], *, max_seconds: float
    ) -> Reply[AnswerT]:
        """Ask the model a question, and return its parsed answer, as described in ``port.Model``."""
        port.refuse_nested_run(self.where)
        program = agent_with_name(AGENT_NAME, self.where).launch_command("").program_path
        if program is None:
            raise HeadlessFailed(
                "codex is not installed, or not on PATH", "Install Codex, or set PATH."
            )
        start_time = time.monotonic()
        prompt = port.make_fenced_prompt(instructions, text).encode("utf-8", "replace")
        output = self._run_codex(program, prompt, answer_type.model_json_schema(), max_seconds)
        if output.has_timed_out:
            raise HeadlessFailed(
                f"{self.name} did not answer within {max_seconds:.0f} s",
                "To allow more time, run the command in a shell with --timeout SECONDS.",
            )
        answer, token_counts = _parse_output(output, self.name)
        answer_object = port.parse_answer(port.parse_single_object(answer), answer_type, self.name)
        return Reply(
            answer_object,
            None,
            port.parse_token_count(token_counts.get("input_tokens")),
            port.parse_token_count(token_counts.get("output_tokens")),
            round(time.monotonic() - start_time, 1),
            self.name,
        )

    def _run_codex(
        self, program: str, prompt: bytes, schema: dict[str, Any], max_seconds: float
    ) -> CapturedOutput:
        """Run Codex in an empty folder, with this plugin's instructions instead of Codex's own."""
        environ = {}
        for key, value in self.where.environ.items():
            if key not in _OUTER_SESSION_VARIABLES:
                environ[key] = value
        try:
            temporary_root = programs.temporary_root(self.where.environ)
            with tempfile.TemporaryDirectory(
                prefix="resume-hooks-", dir=temporary_root, ignore_cleanup_errors=True
            ) as folder:
                empty_folder = os.path.join(folder, "empty")
                os.mkdir(empty_folder)
                files = {
                    "schema.json": json.dumps(make_strict_schema(schema)),
                    "system.md": port.SYSTEM_PROMPT,
                }
                for name, content in files.items():
                    with open(os.path.join(folder, name), "x", encoding="utf-8") as stream:
                        stream.write(content)
                command = [program, *self._build_exec_arguments(folder), "-"]
                return capture_output.run_and_capture_output(
                    command,
                    prompt,
                    environ=environ | {port.NESTED_RUN_VARIABLE: "1"},
                    folder=empty_folder,
                    timeout_seconds=max_seconds,
                )
        except OSError as error:
            raise HeadlessFailed(
                f"codex could not be started: {error.strerror or error}"
            ) from error

    def _build_exec_arguments(self, folder: str) -> list[str]:
        system_prompt_path = json.dumps(os.path.join(folder, "system.md"))
        model_arguments = ["--model", self.model_option] if self.model_option else []
        setting_values = [
            *(f"features.{name}=false" for name in _DISABLED_FEATURES),
            *_FORCED_CODEX_SETTINGS,
            *(
                f"{key}={system_prompt_path}"
                for key in ("model_instructions_file", "experimental_instructions_file")
            ),
            *(f"mcp_servers.{name}.enabled=false" for name in _read_mcp_server_names(self.where)),
        ]
        return [
            "exec",
            "--json",
            "--ephemeral",
            "--skip-git-repo-check",
            "--sandbox",
            "read-only",
            "--color",
            "never",
            "--output-schema",
            os.path.join(folder, "schema.json"),
            *model_arguments,
            *chain.from_iterable(("-c", setting_value) for setting_value in setting_values),
        ]


def make_strict_schema(schema: Any) -> Any:
    """Return the schema in the form that the API requires for structured outputs.

    In this form, every property of an object is required.
    """
    if isinstance(schema, list):
        return [make_strict_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    strict_copy: dict[str, Any] = {}
    for key, value in schema.items():
        if key in {"properties", "$defs"}:
            strict_copy[key] = {name: make_strict_schema(part) for name, part in value.items()}
        elif key in _SCHEMA_KEYWORDS:
            strict_copy[key] = make_strict_schema(value)
    if "properties" in strict_copy:
        return strict_copy | {
            "required": list(strict_copy["properties"]),
            "additionalProperties": False,
        }
    return strict_copy


def _read_mcp_server_names(where: Where) -> list[str]:
    """Return the names of the MCP servers in the user's Codex settings.

    The run disables these servers with options on the command line. Raise HeadlessFailed if the
    name of a server cannot be part of such an option.
    """
    codex_home = where.environ.get("CODEX_HOME") or os.path.join(
        where.environ.get("HOME", "/"), ".codex"
    )
    servers: object = None
    with (
        contextlib.suppress(OSError, ValueError),
        open(os.path.join(codex_home, "config.toml"), "rb") as stream,
    ):
        servers = tomllib.load(stream).get("mcp_servers")
    if isinstance(servers, dict):
        names = [str(name) for name in servers]
    else:
        names = []
    if not all(map(_SERVER_NAME_PATTERN.fullmatch, names)):
        raise HeadlessFailed(
            "codex has an MCP server whose name can't be used in a command-line option"
        )
    return names


def _parse_output(output: CapturedOutput, model_name: str) -> tuple[str, Record]:
    """Return the model's last message in a run, and the token counts of the run.

    Raise HeadlessFailed if the run contains no message, or if the model used a tool.
    """
    if output.is_too_large:
        raise HeadlessFailed(
            f"{model_name} printed more than {capture_output.MAX_OUTPUT_BYTES >> 20} MB"
        )
    answer, token_counts, failure = "", Record(), ""
    for raw in output.stdout.split(b"\n"):
        event = parse_record(raw) or {}
        item = get_mapping(event, "item")
        if get_string(event, "type") == "turn.completed":
            token_counts = get_mapping(event, "usage")
        elif get_string(event, "type") == "turn.failed":
            failure = get_string(get_mapping(event, "error"), "message")
        elif item and get_string(item, "type") not in _HARMLESS_ITEM_TYPES:
            raise HeadlessFailed(
                f"{model_name} used a tool that it was not given: {get_string(item, 'type')}"
            )
        elif get_string(item, "type") == "agent_message":
            answer = get_string(item, "text")
    if output.exit_status or failure or not answer:
        reason = failure or next(
            (line for line in output.stderr.decode("utf-8", "replace").split("\n") if line.strip()),
            "",
        )
        status_text = f"codex ended with status {output.exit_status}"
        raise HeadlessFailed(
            f"{model_name} gave no answer: {port.format_failure_reason(reason) or status_text}"
        )
    return answer, token_counts
