"""What sessions are called, and what the trash holds: rename, tag, delete, restore."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.archives import KeptSession, Retrieved
from resume_hooks.cli.schema.base import Strict


class Called(Strict):
    """A title or a tag that was given."""

    session_id: str
    file: str
    old: str = Field(description="what listings showed before; empty for no tag")
    new: str = Field(description="empty for no tag")
    written: bool = Field(description="false: it is called so already, or --dry-run")


class Deleted(Strict):
    """A session in the trash, or on its way there or back."""

    session_id: str
    locator: str = Field(description="names this delete of the session to restore; empty where nothing was moved")
    title: str
    folder: str = Field(description="where the client must be started to find it")
    file: str = Field(description="where its transcript belongs")
    kept_in: str = Field(description="its folder in the trash; empty where nothing was moved")
    files: int
    size: int = Field(description="bytes of all its files")
    ended: str = Field(description="when it was last written")
    deleted_at: str
    complete: bool = Field(description="false: the delete was not finished; restore joins what it moved with the rest")


class Stray(Strict):
    """A folder in the trash that is no session."""

    folder: str
    files: int
    size: int = Field(description="bytes")
    gone: bool = Field(description="true: half removed, emptying finishes it; false: its note is missing or damaged")


class DerivedSession(Strict):
    """A session that stays when the one that it came from is deleted."""

    session_id: str
    title: str
    kind: str


class Deletion(Strict):
    """What was, or would be, deleted: a session, or what the trash held."""

    session: Deleted | None
    live: str = Field(description="why the session counts as live; empty where it does not")
    derived: list[DerivedSession]
    emptied: list[Deleted] = Field(description="with --empty-trash: what is gone for good")
    strays: list[Stray] = Field(description="with --empty-trash: what goes beside the sessions")
    written: bool


class Restoration(Strict):
    """What came, or would come, back; without a locator what could."""

    session: Deleted | None = Field(description="that came back out of the trash")
    kept: Retrieved | None = Field(description="that came back out of the vault")
    trash: list[Deleted] = Field(description="what the trash holds, the last deleted first; empty with a locator")
    vault: list[KeptSession] = Field(
        description="what the vault alone holds, of a session or of its earlier states; empty with a locator"
    )
    strays: list[Stray] = Field(description="what else the trash holds; empty with a locator")
    written: bool
