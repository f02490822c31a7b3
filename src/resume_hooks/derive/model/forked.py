"""A session's own model, asked by the client that runs it: its last request once more, with its answer and our prompt.

Invariant: the client denies it every tool; what it says is taken as any model's answer, in its form
or not at all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from resume_hooks import clock, settings
from resume_hooks.derive.model import port
from resume_hooks.derive.model.port import Form, Reply
from resume_hooks.errors import HeadlessFailed
from resume_hooks.shared_values import MODEL_SECONDS, MODEL_TIME
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.api_usage import traffic_of
from resume_hooks.transcripts.records import mapping, string

if TYPE_CHECKING:
    from pydantic import BaseModel

REASONS = {"nothing-to-fork": "nothing was sent to it since the session was opened here"}
"""What the client's own words mean."""

LATE = "late"  # the reason where the client gave no answer in time; the others are its own

FORKING = "asking this session's model ({cached:,} tokens cached): up to " + MODEL_TIME

UNAIDED = "No tool is allowed here: answer at once, in text."

_COUNTED = (
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "input_tokens",
    "output_tokens",
)


def forked_prompt(instructions: str, text: str, form: type[BaseModel]) -> str:
    """What stands behind the session: the instructions, the form, and foreign ``text`` within a fence."""
    schema = json.dumps(form.model_json_schema())
    return port.fenced_prompt(
        f"{instructions}\n\n{UNAIDED}\n\nThe schema of the answer:\n{schema}", text
    )


class ForkedModel(NamedTuple):
    """What the module tells: the session's ``model`` and, once it was asked, what ``$.model.fork`` resolved to."""

    told: dict[str, Any]

    @property
    def name(self) -> str:
        """The session's model, ``""`` where there is no module."""
        return one_line(plain_line(string(self.told, "model")), 80)

    @property
    def asked(self) -> bool:
        """Whether it was asked already."""
        return bool(self.told.keys() & {"isAnswered", "reason"})

    @property
    def late(self) -> bool:
        """Whether it took all the time that there is."""
        return string(self.told, "reason") == LATE

    def cached(self, path: str) -> int:
        """Tokens of the session in ``path`` that it is likely to have cached; 0 where another model is to be asked.

        One that the user names is always asked: theirs may be the cheaper one.
        """
        seen = traffic_of(path)
        same = self.name == seen.model  # another one, chosen since, has no cache
        warm = same and seen.is_warm(clock.milliseconds(clock.now()) or 0)
        if self.name and warm and settings.load()["summary_model"].source == "default":
            return seen.cached
        return 0

    @property
    def words(self) -> str:
        """What it took, as the client counts it; ``""`` for nothing."""
        usage = mapping(self.told, "usage")
        cached, written, new, answered = counts = [
            port.token_count(usage.get(key)) for key in _COUNTED
        ]
        told = (
            f"{cached:,} tokens read from the cache, {written:,} written to it, {new:,} new, "
            f"{answered:,} answered"
        )
        if any(counts):
            return told
        return ""

    def ask(self, instructions: str, text: str, form: type[Form], *, limit: float) -> Reply[Form]:
        """See ``port.Model``; what it was asked is the ``forked_prompt``, and ``words`` have what it took."""
        del instructions, text, limit
        if self.late:
            raise HeadlessFailed(f"{self.name} did not answer within {MODEL_SECONDS} s")
        if self.told.get("isAnswered") is not True:
            why = " ".join(
                str(self.told[key]) for key in ("reason", "status", "error") if self.told.get(key)
            )
            why = REASONS.get(why, why)
            raise HeadlessFailed(f"{self.name} gave no answer: {port.reason_line(why)}")
        said = string(
            self.told, "text"
        )  # a tool that it was denied may have words of its own before the answer
        found = port.parse_only_object(said[said.find("{") : said.rfind("}") + 1])
        return Reply(port.parse_answer(found, form, self.name), None, 0, 0, 0.0, self.name)
