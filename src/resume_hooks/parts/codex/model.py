"""Ask a model through Codex: one run of ``codex exec`` without a shell, servers, hooks, the web or a session.

Invariant: as in ``claude_headless``, the model has no tool that runs or writes anything. Codex
0.104 to 0.169 reject such a tool call as unsupported (measured). If a run used a tool anyway, its
answer is discarded.
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
from resume_hooks.derive.model.port import AnswerType, Reply
from resume_hooks.errors import HeadlessFailed
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_named
from resume_hooks.system import capture, programs
from resume_hooks.system.capture import CapturedOutput
from resume_hooks.transcripts.records import Record, mapping, parse, string

AGENT = "codex"

_DISABLED_FEATURES = (
    "shell_tool", "unified_exec", "shell_snapshot", "view_image", "image_generation", "web_search_request", "js_repl",
    "apps", "plugins", "hooks", "codex_hooks", "multi_agent", "collab", "goals", "tool_suggest", "sleep_tool",
    "code_mode_host", "skill_search", "memories", "computer_use", "browser_use", "in_app_browser",
)  # fmt: skip
"""Features that add tools or run programs. Codex ignores unknown names."""

_SETTINGS = (
    'web_search="disabled"', "tools.web_search=false", "notify=[]", 'approval_policy="never"',
    "project_doc_max_bytes=0", 'history.persistence="none"', 'model_reasoning_effort="medium"',
)  # fmt: skip

_HARMLESS_ITEMS = frozenset({"agent_message", "reasoning", "error", "todo_list"})
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]+")
_SCHEMA_KEYWORDS = frozenset(
    {"type", "properties", "items", "anyOf", "enum", "const", "description", "$defs", "$ref"}
)
"""The JSON schema keywords that the API supports in structured outputs."""

_OUTER_VARIABLES = frozenset(
    {"CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_VERSION"}
)


@dataclass(frozen=True, slots=True)
class CodexExec:
    """Asks the Codex on PATH; ``given`` is its ``--model``, or ``""`` for the configured model."""

    where: Where
    given: str

    @property
    def name(self) -> str:
        """The model's name in messages."""
        return self.given or AGENT

    @property
    def is_here(self) -> bool:
        """Whether Codex is installed."""
        return agent_named(AGENT, self.where).launch("").path is not None

    def ask(
        self, instructions: str, text: str, form: type[AnswerType], *, limit: float
    ) -> Reply[AnswerType]:
        """See ``port.Model``."""
        port.refuse_nested_run(self.where)
        program = agent_named(AGENT, self.where).launch("").path
        if program is None:
            raise HeadlessFailed(
                "codex is not installed, or not on PATH", "Install Codex, or set PATH."
            )
        started = time.monotonic()
        prompt = port.fenced_prompt(instructions, text).encode("utf-8", "replace")
        run = self._run(program, prompt, form.model_json_schema(), limit)
        if run.timed_out:
            raise HeadlessFailed(
                f"{self.name} did not answer within {limit:.0f} s",
                "Allow more time, in a shell: --timeout SECONDS",
            )
        answer, counts = _parse_run(run, self.name)
        parsed = port.parse_answer(port.parse_only_object(answer), form, self.name)
        return Reply(
            parsed,
            None,
            port.parse_token_count(counts.get("input_tokens")),
            port.parse_token_count(counts.get("output_tokens")),
            round(time.monotonic() - started, 1),
            self.name,
        )

    def _run(
        self, program: str, prompt: bytes, schema: dict[str, Any], limit: float
    ) -> CapturedOutput:
        """Run Codex in an empty folder, with our instructions instead of its own."""
        environ = {}
        for key, value in self.where.environ.items():
            if key not in _OUTER_VARIABLES:
                environ[key] = value
        try:
            top = programs.temporary_root(self.where.environ)
            with tempfile.TemporaryDirectory(
                prefix="resume-hooks-", dir=top, ignore_cleanup_errors=True
            ) as folder:
                empty = os.path.join(folder, "empty")
                os.mkdir(empty)
                files = {
                    "schema.json": json.dumps(strict_schema(schema)),
                    "system.md": port.SYSTEM_PROMPT,
                }
                for name, content in files.items():
                    with open(os.path.join(folder, name), "x", encoding="utf-8") as stream:
                        stream.write(content)
                command = [program, *self._command_line(folder), "-"]
                return capture.run_captured(
                    command,
                    prompt,
                    environ=environ | {port.NESTED_RUN_VARIABLE: "1"},
                    folder=empty,
                    limit=limit,
                )
        except OSError as error:
            raise HeadlessFailed(
                f"codex could not be started: {error.strerror or error}"
            ) from error

    def _command_line(self, folder: str) -> list[str]:
        system = json.dumps(os.path.join(folder, "system.md"))
        model_option = ["--model", self.given] if self.given else []
        settings = [
            *(f"features.{name}=false" for name in _DISABLED_FEATURES),
            *_SETTINGS,
            *(
                f"{key}={system}"
                for key in ("model_instructions_file", "experimental_instructions_file")
            ),
            *(f"mcp_servers.{name}.enabled=false" for name in _server_names(self.where)),
        ]
        return [
            *(
                "exec",
                "--json",
                "--ephemeral",
                "--skip-git-repo-check",
                "--sandbox",
                "read-only",
                "--color",
                "never",
            ),
            *("--output-schema", os.path.join(folder, "schema.json"), *model_option),
            *chain.from_iterable(("-c", setting) for setting in settings),
        ]


def strict_schema(schema: Any) -> Any:
    """Return a schema that the API accepts for structured outputs, with only required properties."""
    if isinstance(schema, list):
        return [strict_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    strict: dict[str, Any] = {}
    for key, value in schema.items():
        if key in {"properties", "$defs"}:
            strict[key] = {name: strict_schema(part) for name, part in value.items()}
        elif key in _SCHEMA_KEYWORDS:
            strict[key] = strict_schema(value)
    if "properties" in strict:
        return strict | {"required": list(strict["properties"]), "additionalProperties": False}
    return strict


def _server_names(where: Where) -> list[str]:
    """Return the names of the MCP servers in the user's Codex settings.

    Raise HeadlessFailed if a server's name cannot be passed on the command line, because the run
    could not disable that server.
    """
    home = where.environ.get("CODEX_HOME") or os.path.join(where.environ.get("HOME", "/"), ".codex")
    servers: object = None
    with (
        contextlib.suppress(OSError, ValueError),
        open(os.path.join(home, "config.toml"), "rb") as stream,
    ):
        servers = tomllib.load(stream).get("mcp_servers")
    if isinstance(servers, dict):
        names = [str(name) for name in servers]
    else:
        names = []
    if not all(map(_SERVER_NAME.fullmatch, names)):
        raise HeadlessFailed(
            "codex has an MCP server whose name can't be given on its command line"
        )
    return names


def _parse_run(run: CapturedOutput, name: str) -> tuple[str, Record]:
    """Return the last message of a run and its token counts.

    Raise HeadlessFailed if the run has no message or used a tool.
    """
    if run.too_large:
        raise HeadlessFailed(f"{name} printed more than {capture.MAX_OUTPUT >> 20} MB")
    answer, counts, failed = "", Record(), ""
    for raw in run.out.split(b"\n"):
        event = parse(raw) or {}
        item = mapping(event, "item")
        if string(event, "type") == "turn.completed":
            counts = mapping(event, "usage")
        elif string(event, "type") == "turn.failed":
            failed = string(mapping(event, "error"), "message")
        elif item and string(item, "type") not in _HARMLESS_ITEMS:
            raise HeadlessFailed(
                f"{name} used a tool that it was not given: {string(item, 'type')}"
            )
        elif string(item, "type") == "agent_message":
            answer = string(item, "text")
    if run.status or failed or not answer:
        reason = failed or next(
            (line for line in run.err.decode("utf-8", "replace").split("\n") if line.strip()), ""
        )
        raise HeadlessFailed(
            f"{name} gave no answer: {port.format_reason(reason) or f'codex ended with status {run.status}'}"
        )
    return answer, counts
