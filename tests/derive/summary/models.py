"""A model for tests. It gives its answers without a client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from resume_hooks.derive.model.port import AnswerT, Reply
from resume_hooks.errors import HeadlessFailed

ScriptedAnswer = dict[str, Any] | HeadlessFailed | Callable[[], dict[str, Any]]

MINIMAL_SUMMARY: dict[str, Any] = {"goal": "Mend the parser.", "state": "Half of it is done."}
"""The shortest valid summary."""


class ModelCall(NamedTuple):
    """The arguments of one call of the model."""

    instructions: str
    text: str
    max_seconds: float


class ScriptedModel:
    """A model that gives its answers one by one and repeats the last answer.

    ``calls`` has the arguments of each call.
    """

    def __init__(self, answers: Sequence[ScriptedAnswer] = (MINIMAL_SUMMARY,)) -> None:
        self.calls: list[ModelCall] = []
        self._answers = list(answers)

    def ask(
        self, instructions: str, text: str, answer_type: type[AnswerT], *, max_seconds: float
    ) -> Reply[AnswerT]:
        """Return the next answer in the requested form.

        If the next answer is a function, the function is called for the answer.
        """
        self.calls.append(ModelCall(instructions, text, max_seconds))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, HeadlessFailed):
            raise answer
        found = answer() if callable(answer) else answer
        return Reply(answer_type.model_validate(found), 0.01, 100, 10, 1.5, "scripted-1")
