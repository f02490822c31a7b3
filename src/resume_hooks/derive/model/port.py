"""The port to a model: what is asked of it, what comes back; who answers is the caller's choice.

Invariant: ``text`` is data for the model whatever it says, and an answer that does not fit its form is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from resume_hooks.errors import HeadlessFailed
from resume_hooks.system.text import counted

if TYPE_CHECKING:
    from pydantic import BaseModel

Form = TypeVar("Form", bound="BaseModel")


class Reply(NamedTuple, Generic[Form]):
    """An answer in its form, and what it took: tokens and USD as the client counts them, seconds by the clock.

    ``cost_usd`` is None where the client does not say. ``model`` is the name of the one that answered.
    """

    data: Form
    cost_usd: float | None
    tokens_in: int
    tokens_out: int
    seconds: float
    model: str


class Model(Protocol):
    """Somebody who reads a text and answers in a form."""

    def ask(self, instructions: str, text: str, form: type[Form], *, limit: float) -> Reply[Form]:
        """What is to be done by ``instructions`` (trusted) with ``text`` (foreign), within ``limit`` seconds.

        ``form`` is a pydantic model; its JSON schema is what the answer must fit. HeadlessFailed where there is none.
        """
        ...


class Spent(NamedTuple):
    """What several calls took. ``cost_usd`` is None where the client did not say; ``model`` is the last one's name."""

    model: str = ""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0

    def plus(self, reply: Reply[Any]) -> Spent:
        """With one call more that was answered."""
        return self.paid(reply.cost_usd)._replace(
            model=reply.model,
            tokens_in=self.tokens_in + reply.tokens_in,
            tokens_out=self.tokens_out + reply.tokens_out,
            seconds=round(self.seconds + reply.seconds, 1),
        )

    @property
    def words(self) -> str:
        """The same in words; ``""`` where no call was answered."""
        if not self.tokens_out and self.cost_usd is None:
            return ""
        cost = "" if self.cost_usd is None else f", {self.cost_usd:.4f} USD"
        counts = f"{self.tokens_in:,} tokens read, {self.tokens_out:,} written, {self.seconds:g} s"
        read = counts if self.tokens_out else "its tokens not told"
        return f"{counted(self.calls, 'call')}, {read}{cost}"

    def paid(self, cost_usd: float | None) -> Spent:
        """With one call more, of which only the cost is known."""
        costs = [cost for cost in (self.cost_usd, cost_usd) if cost is not None]
        return self._replace(calls=self.calls + 1, cost_usd=sum(costs) if costs else None)


class Metered:
    """A model and what it took so far, in ``spent``; also where a call failed that cost something."""

    def __init__(self, model: Model) -> None:
        self.spent = Spent()
        self._model = model

    def ask(self, instructions: str, text: str, form: type[Form], *, limit: float) -> Reply[Form]:
        """See ``Model``."""
        try:
            reply = self._model.ask(instructions, text, form, limit=limit)
        except HeadlessFailed as error:
            self.spent = self.spent.paid(error.cost_usd)
            raise
        self.spent = self.spent.plus(reply)
        return reply
