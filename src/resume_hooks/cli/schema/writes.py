"""What was written: receipts of rollover, trim, untrim, repair."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import Strict


class CheckRow(Strict):
    """One invariant of a written session."""

    name: str
    ok: bool


class Commands(Strict):
    """How to go on in the child."""

    in_client: str
    shell: str


class Receipt(Strict):
    """What a verb wrote, or would write where ``written`` is false."""

    session_id: str
    file: str
    title: str
    parent_session_id: str
    parent_file: str
    kind: str
    written: bool
    tokens_before: int
    tokens_after: int
    chars_saved: int
    tools_trimmed: int
    checks: list[CheckRow]
    commands: Commands


class SavingsRow(Strict):
    """What goes by one name."""

    name: str
    pieces: int
    tokens_before: int
    tokens_after: int


class SavedItem(Strict):
    """One of the largest pieces."""

    original: str = Field(description="reference: session and record")
    rule: str
    tool: str
    target: str
    tokens: int


class Savings(Strict):
    """What a trim saves, in tokens of what the client would send."""

    pays: bool
    tokens_saved: int
    measured: bool = Field(description="the size before was counted by the API; else estimated")
    window: int
    percent_before: int
    percent_after: int
    compacts_at_once: bool = Field(description="the client would compact the child on resume")
    rollover_tokens: int = Field(description="what a fresh child would hold instead")
    characters_per_token: float
    rules: list[SavingsRow]
    tools: list[SavingsRow]
    largest: list[SavedItem]


class TrimReceipt(Receipt):
    """The receipt of a trim; no id and no file where it would not pay."""

    savings: Savings
    in_place: bool = Field(default=False, description="the session's own file was, or would be, rewritten")
    backup: str | None = Field(default=None, description="the exact copy that a trim in place kept of the file")


class MissingOriginal(Strict):
    """A trimmed record that stays as it is."""

    record: int = Field(description="0-based line in the parent's file")
    why: str


class Restoration(Strict):
    """What an untrim brings back."""

    trimmed: int = Field(description="trimmed records of the parent's conversation")
    restored: int
    characters: int = Field(description="of what is sent, more than before")
    missing: list[MissingOriginal]


class UntrimReceipt(Receipt):
    """The receipt of an untrim; no id and no file where nothing was trimmed."""

    restoration: Restoration
