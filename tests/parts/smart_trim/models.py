"""Stand-ins for models, which answer from the offered numbers and record the requests."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from resume_hooks.derive.model.port import Reply
from resume_hooks.derive.trim import plan
from resume_hooks.errors import HeadlessFailed
from resume_hooks.parts.smart_trim import plan as smart
from resume_hooks.parts.smart_trim.ask_model import ModelResult, ask_model_about_offer
from resume_hooks.parts.smart_trim.offered_contents import (
    DEFAULT_RULE_NAMES,
    OfferedContents,
    build_offer,
    build_smart_options,
)
from resume_hooks.parts.smart_trim.plan import SmartPlan, build_rule_verdicts
from resume_hooks.sessions.locate import session_file
from tests.builders import ConfigHome

Form = TypeVar("Form", bound=BaseModel)
Rows = list[dict[str, Any]]

NUMBER_PATTERN = re.compile(r"^#(\d+) · ", re.MULTILINE)
"""Matches the number of a piece of content at the start of its line."""


def choice_row(
    number: int, description: str = "an old listing", rationale: str = "nothing refers to it"
) -> dict[str, Any]:
    """Return a model's choice of one piece of content."""
    return {"number": number, "description": description, "rationale": rationale}


class FakeModel:
    """A model whose choices are the result of ``choose``, which gets the numbers of the offered contents."""

    def __init__(self, choose: Callable[[list[int]], Rows]) -> None:
        self._choose = choose
        self.asked: list[tuple[str, str]] = []

    def ask(
        self, instructions: str, text: str, answer_type: type[Form], *, max_seconds: float
    ) -> Reply[Form]:
        """Return the choices in the requested form, like the real model."""
        assert max_seconds > 0
        self.asked.append((instructions, text))
        rows = self._choose([int(number) for number in NUMBER_PATTERN.findall(text)])
        return Reply(answer_type.model_validate({"choices": rows}), 0.01, 1_000, 100, 1.5, "fake-1")


class FailingModel:
    """A model that answers ``answer_count`` times and then fails."""

    def __init__(self, answer_count: int = 0) -> None:
        self._left = answer_count

    def ask(
        self, instructions: str, text: str, answer_type: type[Form], *, max_seconds: float
    ) -> Reply[Form]:
        """Return an answer without choices, or fail."""
        if not self._left:
            raise HeadlessFailed("it refused")
        self._left -= 1
        return Reply(answer_type.model_validate({"choices": []}), 0.01, 1, 1, 0.1, "fake-1")


def model_that_drops_everything() -> FakeModel:
    """Return a model that chooses all contents that it is offered."""
    return FakeModel(
        lambda numbers: [choice_row(number, f"content {number}") for number in numbers]
    )


def model_with_choices(*choices: dict[str, Any]) -> FakeModel:
    """Return a model that always makes these choices."""
    return FakeModel(lambda _numbers: list(choices))


def model_with_random_choices(seed: int) -> FakeModel:
    """Return a model with random choices, some of them repeated or unknown."""
    chance = random.Random(seed)
    return FakeModel(
        lambda numbers: [
            choice_row(chance.choice([*numbers, -1, 0, 10**30])) for _ in range(len(numbers))
        ]
    )


def offer_of_file(
    path: object,
    home: ConfigHome,
    *,
    keep_recent: int | None = 0,
    rules: Sequence[str] = DEFAULT_RULE_NAMES,
) -> OfferedContents:
    """Return the contents of a file that are offered to a model. By default, no content counts as recent."""
    scanned = plan.scan_session(session_file(str(path)))
    return build_offer(scanned, build_smart_options(keep_recent, rules), home.where)


def choices_of_model(
    model: FakeModel | FailingModel,
    offer: OfferedContents,
    wishes: str = "",
    max_seconds: float = 60,
) -> ModelResult:
    """Return a model's choices from an offer."""
    return ask_model_about_offer(model, offer, wishes, max_seconds, lambda _number, _count: None)


def plan_with_model(
    offer: OfferedContents,
    model: FakeModel,
    home: ConfigHome,
    wishes: str = "",
    folder: str | None = None,
) -> SmartPlan:
    """Return the plan that results from the rules and the model's choices."""
    verdicts = [*build_rule_verdicts(offer), *choices_of_model(model, offer, wishes).verdicts]
    return smart.plan_smart_trim(offer, verdicts, home.where, folder)
