"""Ask Claude Code's model with ``claude -p``, or find the model of another client.

``claude -p`` uses the user's own account. The table of agents names a function for each other
client. The function takes ``where`` and the name of a model, and returns the client's model of this
name.

Invariant: text from a session reaches the client only through stdin, marked as data. The text
cannot start a tool, run a slash command or add a file to the request. If the answer does not fit
the requested schema, the call fails.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import orjson

from resume_hooks import questions, settings
from resume_hooks.derive.model import port
from resume_hooks.derive.model.port import AnswerT, HeadlessModel, Reply
from resume_hooks.errors import HeadlessFailed
from resume_hooks.paths import Where
from resume_hooks.sessions.agents import registry
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system import capture_output, claude_cli, programs
from resume_hooks.system.capture_output import CapturedOutput
from resume_hooks.system.processes import read_client_command
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.records import get_string

_AT_SIGN, _FULLWIDTH_AT = "@", "\N{FULLWIDTH COMMERCIAL AT}"
"""The @ sign, and the full-width @ that replaces it in prompts.

If a prompt mentions a file as ``@path``, clients add that file to the request, even if no tools are
allowed. They do not do this if the path follows a full-width @.
"""

_INHERITED_VARIABLE_NAMES = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "IS_SANDBOX", "CLOUD_ML_REGION"}
    | {"CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS", "NODE_EXTRA_CA_CERTS"}
    | {"CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"}
    | {"CLAUDE_CODE_CERT_STORE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"}
)  # fmt: skip
_INHERITED_VARIABLE_PREFIXES = (
    "LC_", "XDG_", "SSL_CERT_", "ANTHROPIC_", "AWS_", "GOOGLE_", "GCLOUD_", "CLOUDSDK_", "VERTEX_", "AZURE_",
    "CLAUDE_CODE_USE_", "CLAUDE_CODE_SKIP_",
)  # fmt: skip
"""The prefixes of environment variables that are passed to the client.

These variables and those in ``_INHERITED_VARIABLE_NAMES`` let the client reach its provider. The
variables of the running session are not passed.
"""

_CLIENT_RESTRICTION_VARIABLES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "16000",
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "MAX_STRUCTURED_OUTPUT_RETRIES": "2",
    "MAX_THINKING_TOKENS": "0",
}
"""Variables that make the client ignore CLAUDE.md files and attachments, and retry only twice.

In client 2.1.329, ``MAX_THINKING_TOKENS`` has no effect: the amount of thinking depends only on the
effort.
"""

_CLIENT_SETTINGS = json.dumps(
    {"disableAllHooks": True, "outputStyle": "default", "env": _CLIENT_RESTRICTION_VARIABLES}
)
"""The settings that are passed to the client.

The user's settings can override environment variables, but not these settings. For this reason, the
variables in ``_CLIENT_RESTRICTION_VARIABLES`` are repeated here.
"""


@dataclass(frozen=True, slots=True)
class HeadlessClaude:
    """A model that answers through ``claude -p``.

    The command runs the client on PATH or, if PATH has no client, the client that started this
    process. ``name`` is the value of the option ``--model``.
    """

    where: Where
    name: str

    @property
    def is_installed(self) -> bool:
        """Whether the client is installed."""
        return bool(self._find_client_command())

    def ask(
        self, instructions: str, text: str, answer_type: type[AnswerT], *, max_seconds: float
    ) -> Reply[AnswerT]:
        """Send the text to the model and return its parsed answer, as ``port.Model`` requires."""
        port.refuse_nested_run(self.where)
        client = self._find_client_command()
        if not client:
            raise HeadlessFailed(
                "claude is not installed, or not on PATH", "Install the client, or set PATH."
            )
        start_time = time.monotonic()
        prompt = (
            port.make_fenced_prompt(instructions, text)
            .replace(_AT_SIGN, _FULLWIDTH_AT)
            .encode("utf-8", "replace")
        )
        command = [
            *client,
            *_make_client_options(self.name, json.dumps(answer_type.model_json_schema())),
        ]
        captured = self._run_client(command, prompt, max_seconds)
        if captured.has_timed_out:
            raise HeadlessFailed(
                f"{self.name} did not answer within {max_seconds:.0f} s",
                "To allow more time, run the command in a shell with --timeout SECONDS.",
            )
        return _parse_reply(captured, answer_type, self.name, time.monotonic() - start_time)

    def _find_client_command(self) -> list[str]:
        program = claude_cli.find_client(self.where)
        if program:
            return [program]
        return read_client_command(self.where)

    def _run_client(self, command: list[str], prompt: bytes, max_seconds: float) -> CapturedOutput:
        """Run the client in an empty temporary folder that belongs to no project.

        Afterwards the folder is removed, with all files that the client left there.
        """
        try:
            temporary_root = programs.temporary_root(self.where.environ)
            with tempfile.TemporaryDirectory(
                prefix="resume-hooks-", dir=temporary_root, ignore_cleanup_errors=True
            ) as folder:
                empty_folder, scratch_folder = (
                    os.path.join(folder, name) for name in ("empty", "tmp")
                )
                os.mkdir(empty_folder)
                os.mkdir(scratch_folder)
                environ = {
                    **select_inherited_variables(self.where),
                    **_CLIENT_RESTRICTION_VARIABLES,
                    port.NESTED_RUN_VARIABLE: "1",
                    "TMPDIR": scratch_folder,
                }
                return capture_output.run_and_capture_output(
                    command,
                    prompt,
                    environ=environ,
                    folder=empty_folder,
                    timeout_seconds=max_seconds,
                )
        except OSError as error:
            raise HeadlessFailed(
                f"claude could not be started: {error.strerror or error}"
            ) from error


def make_headless_model(where: Where, name: str) -> HeadlessClaude:
    """Return the model with this name or, if the name is ``""``, the model in the user's settings."""
    return HeadlessClaude(where, name or str(settings.load_settings()["summary_model"].value))


def select_inherited_variables(where: Where) -> dict[str, str]:
    """Return the environment variables that are passed to the client."""
    variables = {}
    for name, value in where.environ.items():
        if (
            name in _INHERITED_VARIABLE_NAMES
            or name.upper() in _INHERITED_VARIABLE_NAMES
            or name.startswith(_INHERITED_VARIABLE_PREFIXES)
        ):
            variables[name] = value
    return variables


def _make_client_options(model_name: str, schema: str) -> list[str]:
    """Return the client's command-line options. Clients 2.1.42 to 2.1.329 support all of them.

    The client loads the user's settings, because these may contain the credentials.
    """
    return [
        "-p",
        "--output-format",
        "json",
        "--no-session-persistence",
        "--model",
        model_name,
        "--effort",
        "medium",
        "--tools",
        "",
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--permission-mode",
        "dontAsk",
        "--setting-sources",
        "user",
        "--settings",
        _CLIENT_SETTINGS,
        "--system-prompt",
        port.SYSTEM_PROMPT,
        "--json-schema",
        schema,
    ]


def _parse_reply(
    output: CapturedOutput, answer_type: type[AnswerT], model_name: str, seconds: float
) -> Reply[AnswerT]:
    result = _find_result_record(output, model_name)
    cost = _parse_cost(result.get("total_cost_usd"))
    if (
        output.exit_status
        or result.get("is_error") is True
        or result.get("stop_reason") == "refusal"
    ):
        raise HeadlessFailed(
            f"{model_name} gave no answer: {_find_failure_reason(result)}", cost_usd=cost
        )
    structured = result.get("structured_output")
    answer = (
        structured
        if isinstance(structured, dict)
        else port.parse_single_object(get_string(result, "result"))
    )
    parsed_answer = port.parse_answer(
        answer,
        answer_type,
        model_name,
        cost,
        restore_bytes=lambda raw: raw.replace(_FULLWIDTH_AT.encode(), _AT_SIGN.encode()),
    )
    usage = result.get("usage")
    counts: dict[str, Any] = usage if isinstance(usage, dict) else {}
    return Reply(
        parsed_answer,
        cost,
        sum(
            port.parse_token_count(counts.get(key))
            for key in counts
            if key.endswith("input_tokens")
        ),
        port.parse_token_count(counts.get("output_tokens")),
        round(seconds, 1),
        _find_answering_model(result) or model_name,
    )


def _find_result_record(captured: CapturedOutput, model_name: str) -> dict[str, Any]:
    """Return the record that describes the client's run. Raises HeadlessFailed if there is none.

    A verbose client prints a list of events, the last of which is this record.
    """
    if captured.is_too_large:
        raise HeadlessFailed(
            f"{model_name} printed more than {capture_output.MAX_OUTPUT_BYTES >> 20} MB"
        )
    try:
        output = orjson.loads(captured.stdout)
    except orjson.JSONDecodeError:
        output = None
    rows = output if isinstance(output, list) else [output]
    result_row = next(
        (row for row in reversed(rows) if isinstance(row, dict) and row.get("type") == "result"),
        None,
    )
    if result_row is not None:
        return result_row
    reason = port.format_failure_reason(
        next(
            (
                line
                for line in captured.stderr.decode("utf-8", "replace").split("\n")
                if line.strip()
            ),
            "",
        )
    )
    if captured.exit_status < 0:
        raise HeadlessFailed(f"claude was ended by signal {-captured.exit_status}")
    if captured.exit_status:
        raise HeadlessFailed(
            f"claude ended with status {captured.exit_status}{f': {reason}' if reason else ''}"
        )
    raise HeadlessFailed("claude did not answer with JSON")


def _find_failure_reason(result: dict[str, Any]) -> str:
    errors = result.get("errors")
    first_error = errors[0] if isinstance(errors, list) and errors else None
    return (
        port.format_failure_reason(
            first_error if isinstance(first_error, str) else get_string(result, "result")
        )
        or "no reason given"
    )


def _find_answering_model(result: dict[str, Any]) -> str:
    usage_by_model = result.get("modelUsage")
    if isinstance(usage_by_model, dict):
        rows = {name: row for name, row in usage_by_model.items() if isinstance(row, dict)}
    else:
        rows = {}
    busiest_model = max(
        rows, key=lambda name: port.parse_token_count(rows[name].get("outputTokens")), default=""
    )
    return collapse_line(plain_line(busiest_model), 80)


def _parse_cost(value: object) -> float | None:
    if type(value) in {int, float} and isinstance(value, (int, float)) and value >= 0:
        return float(value)
    return None


def choose_model(session: SessionFile, where: Where, name: str = "") -> HeadlessModel:
    """Return the model of the session's agent or, if its client is not installed, of another agent.

    ``name`` is the name of the model. If it is ``""``, the model in the user's settings is used.
    """
    rows = [row for row in registry.AGENT_ROWS.values() if row.model_entry_point]
    rows.sort(key=lambda row: row.name != session.agent)
    models = []
    for row in rows:
        make_model = questions.agent_model.load_function(row.part, row.model_entry_point)
        models.append(make_model(where, name))
    return next((model for model in models if model.is_installed), models[0])
