"""The tree of expected failures: each says what happened, where, and what to do about it."""

from __future__ import annotations


class ResumeHooksError(Exception):
    """Base of every failure that a user may meet and that is not a bug.

    ``code`` is the stable name in ``--json``, ``exit_code`` what the shell gets.
    """

    code = "failed"
    exit_code = 1

    def __init_subclass__(cls, code: str = "") -> None:
        if code:
            cls.code = code

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(ResumeHooksError, code="usage"):
    """What was typed can't be done as it stands."""

    exit_code = 2


class AmbiguousLocator(UsageError, code="ambiguous-locator"):
    """A locator fits several sessions; ``candidates`` are rows of the newest of them, ``count`` all there are.

    A row names the session by ``session_id``, or by ``locator`` if the id alone does not.
    """

    def __init__(
        self,
        locator: str,
        candidates: list[dict[str, object]],
        count: int = 0,
        remedy: str = (
            "Use the id of the one you mean, as much of it as it takes, or the path of its file."
        ),
    ) -> None:
        self.locator = locator
        self.candidates = candidates
        self.count = count or len(candidates)
        super().__init__(f"'{locator}' fits {self.count} sessions", remedy)


class SessionNotFound(ResumeHooksError, code="session-not-found"):
    """No session matches a locator."""


class NothingToHandOff(ResumeHooksError, code="nothing-to-hand-off"):
    """The session has no turn of its own, so a child of it would carry nothing."""


class NothingToRecover(ResumeHooksError, code="nothing-to-recover"):
    """Nothing was asked or done in the session, so there is nothing to recover."""


class NothingToTrim(ResumeHooksError, code="nothing-to-trim"):
    """The session holds no conversation, so there is nothing that could be trimmed."""


class NothingToFork(ResumeHooksError, code="nothing-to-fork"):
    """The session holds no conversation, so a copy of it would hold none."""


class NothingToMark(ResumeHooksError, code="nothing-to-mark"):
    """The session is empty, so it holds nothing to come back to."""


class InSubagent(UsageError, code="in-subagent"):
    """Marks are not available in a sub-agent, whose transcript nobody resumes."""

    def __init__(self) -> None:
        super().__init__(
            "A sub-agent has no marks", "Use it in the session that started the sub-agent."
        )


class NoMark(ResumeHooksError, code="no-mark"):
    """The session has no mark to go back to."""


class TitleTaken(ResumeHooksError, code="title-taken"):
    """Another session of the project has the title; titles are locators and stay unique."""


class PlaceTaken(ResumeHooksError, code="place-taken"):
    """Another file is in the place that a session would be restored to; nothing was moved."""


class NoFileHistory(ResumeHooksError, code="no-file-history"):
    """The client kept no states of the user's files, or none that could be restored."""


class CantRestore(ResumeHooksError, code="cant-restore"):
    """Some files can't be restored as they were, so nothing was done."""


class Interrupted(ResumeHooksError, code="interrupted"):
    """The user, or the system, ended a command in the middle; the message says how far it came."""

    exit_code = 130


class SessionOpen(ResumeHooksError, code="session-open"):
    """A session that is, or may be, written by a running client, or by another of our own commands."""


class NotATranscript(ResumeHooksError, code="not-a-transcript"):
    """The file is not a transcript of Claude Code."""


class ImportFailed(ResumeHooksError, code="import-failed"):
    """An import could not be fetched or read, or is too large; nothing was written."""


class TooDeep(ResumeHooksError, code="too-deep"):
    """A record of a transcript nests deeper than it could be written again."""


class OutputFailed(ResumeHooksError, code="output-failed"):
    """The answer could not be printed; what it reports was done all the same."""


class CheckFailed(ResumeHooksError, code="check-failed"):
    """A written session broke an invariant as read back; the file is already removed."""


class WriteFailed(ResumeHooksError, code="write-failed"):
    """The file system refused a write; nothing was left behind."""


class HeadlessFailed(ResumeHooksError, code="headless-failed"):
    """The headless model gave no usable answer; the message says how it failed.

    ``cost_usd`` is the cost of the attempt, None if the client does not report it.
    """

    def __init__(self, message: str, remedy: str = "", cost_usd: float | None = None) -> None:
        super().__init__(message, remedy)
        self.cost_usd = cost_usd


class VaultOff(ResumeHooksError, code="vault-off"):
    """Sessions may not be archived: a setting forbids it, or a retention period that an employer manages."""


class OnlyKept(ResumeHooksError, code="only-kept"):
    """Only the archived copy of the session is left. No verb changes it.

    Once restored, it can be resumed.
    """


class PlanOutdated(ResumeHooksError, code="plan-outdated"):
    """A plan names contents that the session no longer holds, or that have changed since."""


class IndexDamaged(ResumeHooksError, code="index-damaged"):
    """The index is unreadable and must be rebuilt."""


class IndexUnusable(ResumeHooksError, code="index-unusable"):
    """The index can't be written in its place (the disk is read-only or full), or a newer version wrote it."""
