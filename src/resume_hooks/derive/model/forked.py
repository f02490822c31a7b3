"""Ask a session's own model through the running client.

The plugin's JavaScript module sends the session's last request again, followed by the model's
answer and our prompt. This Python module makes that prompt and parses the answer to it.

Invariant: the client does not allow the model any tool. The answer is parsed like any other model's
answer, and refused if it does not fit the schema.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from resume_hooks import clock, settings
from resume_hooks.derive.model import port
from resume_hooks.derive.model.port import AnswerT, Reply
from resume_hooks.errors import HeadlessFailed
from resume_hooks.shared_values import MODEL_TIMEOUT_SECONDS, MODEL_TIMEOUT_TEXT
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.api_usage import read_recent_requests
from resume_hooks.transcripts.records import get_mapping, get_string

if TYPE_CHECKING:
    from pydantic import BaseModel

EXPLANATIONS_BY_FAILURE_REASON = {
    "nothing-to-fork": "nothing has been sent to it since the session was opened here"
}
"""Maps a reason that the client gives for a missing answer to an explanation."""

# The reason that is recorded if the client did not answer in time. The client itself never reports
# this reason.
TIMEOUT_REASON = "late"

SESSION_MODEL_PROGRESS_TEMPLATE = (
    "asking this session's model ({cached:,} tokens cached): up to " + MODEL_TIMEOUT_TEXT
)

NO_TOOLS_SENTENCE = "No tool is allowed here: answer at once, in text."

_TOKEN_COUNT_FIELD_NAMES = (
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "input_tokens",
    "output_tokens",
)


def make_prompt_for_session_model(
    instructions: str, text: str, answer_type: type[BaseModel]
) -> str:
    """Return a prompt with the instructions, the schema of ``answer_type``, and ``text`` between two marks.

    The prompt is sent as the session's next prompt.
    """
    schema = json.dumps(answer_type.model_json_schema())
    return port.make_fenced_prompt(
        f"{instructions}\n\n{NO_TOOLS_SENTENCE}\n\nThe schema of the answer:\n{schema}", text
    )


class SessionModel(NamedTuple):
    """The session's model, as described by a report from the plugin's JavaScript module.

    ``client_report`` contains the name of the ``model`` and, after a request, the result of
    ``$.model.fork``.
    """

    client_report: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the session's model, or ``""`` if the plugin's JavaScript module does not run."""
        return collapse_line(plain_line(get_string(self.client_report, "model")), 80)

    @property
    def has_request_result(self) -> bool:
        """Whether the report contains the result of a request."""
        return bool(self.client_report.keys() & {"isAnswered", "reason"})

    @property
    def has_timed_out(self) -> bool:
        """Whether the request timed out."""
        return get_string(self.client_report, "reason") == TIMEOUT_REASON

    def count_cached_tokens(self, path: str) -> int:
        """Return how many tokens of the session in ``path`` are probably in the API's cache.

        Return 0 if this model should not be asked, because its cache is cold or the user's settings
        name a model. The model in the settings takes precedence, because it may be cheaper.
        """
        recent_requests = read_recent_requests(path)
        # If the user selected a different model after the last request, that model has no cache
        # yet.
        is_same_model = self.name == recent_requests.model
        is_warm = is_same_model and recent_requests.is_warm(clock.to_milliseconds(clock.now()) or 0)
        if self.name and is_warm and settings.load_settings()["summary_model"].source == "default":
            return recent_requests.cached_tokens
        return 0

    @property
    def usage_text(self) -> str:
        """The token counts that the client reports for the request, in words, or ``""`` if there are none."""
        usage = get_mapping(self.client_report, "usage")
        cache_reads, cache_writes, uncached, output = counts = [
            port.parse_token_count(usage.get(key)) for key in _TOKEN_COUNT_FIELD_NAMES
        ]
        text = (
            f"{cache_reads:,} tokens read from the cache, {cache_writes:,} written to it, {uncached:,} uncached, "
            f"{output:,} in the answer"
        )
        if any(counts):
            return text
        return ""

    def ask(
        self, instructions: str, text: str, answer_type: type[AnswerT], *, max_seconds: float
    ) -> Reply[AnswerT]:
        """Return the answer that the report contains. No request is sent.

        All arguments except ``answer_type`` are ignored, because ``make_prompt_for_session_model`` already put them
        into the prompt. Raises HeadlessFailed if the report contains no valid answer.
        """
        del instructions, text, max_seconds
        if self.has_timed_out:
            raise HeadlessFailed(f"{self.name} did not answer within {MODEL_TIMEOUT_SECONDS} s")
        if self.client_report.get("isAnswered") is not True:
            reason = " ".join(
                str(self.client_report[key])
                for key in ("reason", "status", "error")
                if self.client_report.get(key)
            )
            reason = EXPLANATIONS_BY_FAILURE_REASON.get(reason, reason)
            raise HeadlessFailed(
                f"{self.name} gave no answer: {port.format_failure_reason(reason)}"
            )
        # If a tool was denied, the model may have written text before the answer.
        answer_text = get_string(self.client_report, "text")
        answer = port.parse_single_object(
            answer_text[answer_text.find("{") : answer_text.rfind("}") + 1]
        )
        return Reply(port.parse_answer(answer, answer_type, self.name), None, 0, 0, 0.0, self.name)
