"""What every form has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """No field beyond the documented ones."""

    model_config = ConfigDict(extra="forbid")


class Spent(Strict):
    """What a headless model took; no calls where none was asked."""

    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None = Field(description="as the client says; null where it does not")
    seconds: float
