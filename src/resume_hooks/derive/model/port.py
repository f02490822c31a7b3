"""The port to a model: what is asked of it and what comes back; the caller chooses who answers.

Invariant: ``text`` is data for the model whatever it says, and an answer that does not fit its form counts as none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from resume_hooks.errors import HeadlessFailed
from resume_hooks.system.text import counted

if TYPE_CHECKING:
    from pydantic import BaseModel

Form = TypeVar("Form", bound="BaseModel")
Progress = Callable[[int, int], None]
LIMIT = 120  # seconds that a model has for all of an answer: somebody waits for it


class Reply(NamedTuple, Generic[Form]):
    """An answer in its form, and what it took: tokens and USD as the client counts them, seconds by the clock.

    ``cost_usd`` is None if the client does not say; ``model`` is the name of the one that answered.
    """

    data: Form
    cost_usd: float | None
    tokens_in: int
    tokens_out: int
    seconds: float
    model: str


class Model(Protocol):
    """A model that reads a text and answers in a form."""

    def ask(self, instructions: str, text: str, form: type[Form], *, limit: float) -> Reply[Form]:
        """Follow ``instructions`` (trusted) on ``text`` (foreign), within ``limit`` seconds.

        ``form`` is a pydantic model; its JSON schema is what the answer must fit. HeadlessFailed if none does.
        """
        ...


class HeadlessModel(Model, Protocol):
    """A model that a client's program asks."""

    @property
    def name(self) -> str:
        """What people are told."""

    @property
    def is_here(self) -> bool:
        """Whether the program is installed."""


class Spent(NamedTuple):
    """What several calls took. ``cost_usd`` is None if the client did not say; ``model`` is the last one's name."""

    model: str = ""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0

    def plus(self, reply: Reply[Any]) -> Spent:
        """With one more call that was answered."""
        return self.paid(reply.cost_usd)._replace(
            model=reply.model,
            tokens_in=self.tokens_in + reply.tokens_in,
            tokens_out=self.tokens_out + reply.tokens_out,
            seconds=round(self.seconds + reply.seconds, 1),
        )

    @property
    def words(self) -> str:
        """The same in words; ``""`` where nothing is known."""
        counts = f"{self.tokens_in:,} tokens read, {self.tokens_out:,} written, {self.seconds:g} s"
        known = [counts] if self.tokens_out else []
        known += [f"{self.cost_usd:.4f} USD"] if self.cost_usd else []
        return ", ".join([counted(self.calls, "call"), *known]) if known else ""

    def paid(self, cost_usd: float | None) -> Spent:
        """With one more call, of which only the cost is known."""
        costs = [cost for cost in (self.cost_usd, cost_usd) if cost is not None]
        return self._replace(calls=self.calls + 1, cost_usd=sum(costs) if costs else None)


class ModelCalls:
    """Several calls within ``limit`` seconds, what they ``spent``; ``progress`` gets each one's number, of how many."""

    def __init__(self, model: Model, limit: float, progress: Progress) -> None:
        self.spent = Spent()
        self._model = model
        self._limit, self._deadline = limit, time.monotonic() + limit
        self._progress = progress

    def ask_all(self, calls: Iterable[tuple[str, str]], count: int, form: type[Form]) -> Iterator[Form]:
        """The answers to ``count`` calls (instructions, text). HeadlessFailed if one fails or the time is over."""
        for number, (instructions, text) in enumerate(calls, 1):
            self._progress(number, count)
            left = self._deadline - time.monotonic()
            if left <= 0:
                message = f"it took over {self._limit:g} s: {number - 1} of {counted(count, 'call')} answered"
                raise HeadlessFailed(message, "Give it more time (--timeout).")
            try:
                reply = self._model.ask(instructions, text, form, limit=left)
            except HeadlessFailed as error:
                self.spent = self.spent.paid(error.cost_usd)
                raise
            self.spent = self.spent.plus(reply)
            yield reply.data
