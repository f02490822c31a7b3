"""What every form has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """No field beyond the documented ones."""

    model_config = ConfigDict(extra="forbid")
