"""The exceptions for expected failures. The message says what happened, and the remedy what to do."""

from __future__ import annotations

import errno

ExitCode = int
"""The exit code of a command. ``cli.main.run`` lists the exit codes."""


class ResumeHooksError(Exception):
    """Base class of all failures that a user may see and that are not bugs.

    ``code`` names the failure in the output of ``--json`` and never changes. ``exit_code`` is the
    exit code of the command line.
    """

    code = "failed"
    exit_code: ExitCode = 1

    def __init_subclass__(cls, code: str = "") -> None:
        if code:
            cls.code = code

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(ResumeHooksError, code="usage"):
    """The command or its arguments are invalid."""

    exit_code = 2


class AmbiguousLocator(UsageError, code="ambiguous-locator"):
    """A locator matches several sessions.

    ``candidates`` describes the newest of these sessions, and ``count`` is the number of all of
    them. A candidate has a ``session_id``. If the id also matches several sessions, the candidate
    has a ``locator`` too.
    """

    def __init__(
        self,
        locator: str,
        candidates: list[dict[str, object]],
        count: int = 0,
        remedy: str = ("Give more of the session's id, or the path of its file."),
    ) -> None:
        self.locator = locator
        self.candidates = candidates
        self.count = count or len(candidates)
        super().__init__(f"'{locator}' fits {self.count} sessions", remedy)


class SessionNotFound(ResumeHooksError, code="session-not-found"):
    """No session matches a locator."""


class SessionDeleted(SessionNotFound):
    """The only session that matches a locator is in the trash."""


class NothingToHandOff(ResumeHooksError, code="nothing-to-hand-off"):
    """The session has no turn of its own, so a child would be empty."""


class NothingToRecover(ResumeHooksError, code="nothing-to-recover"):
    """The session has no prompts and no work to recover."""


class NothingToTrim(ResumeHooksError, code="nothing-to-trim"):
    """The session has no conversation to trim."""


class NothingToFork(ResumeHooksError, code="nothing-to-fork"):
    """The session has no conversation to copy."""


class NothingToMark(ResumeHooksError, code="nothing-to-mark"):
    """The session is empty, so a mark would have nothing to return to."""


class MarkInSubagent(UsageError, code="in-subagent"):
    """Marks can't be used in a sub-agent, because its transcript is never resumed."""

    def __init__(self) -> None:
        super().__init__(
            "A sub-agent has no marks", "Use it in the session that started the sub-agent."
        )


class MarkNotFound(ResumeHooksError, code="no-mark"):
    """The session has no mark to return to."""


class TitleTaken(ResumeHooksError, code="title-taken"):
    """Another session of the project has the title. Titles are locators and must be unique."""


class PathTaken(ResumeHooksError, code="place-taken"):
    """Another file exists at the path to which a session would be restored. Nothing was moved."""


class NoFileHistory(ResumeHooksError, code="no-file-history"):
    """The client has stored no earlier states of the user's files, or none that can be restored."""


class RestoreFailed(ResumeHooksError, code="cant-restore"):
    """Some files can't be restored exactly, so nothing was restored."""


class Interrupted(ResumeHooksError, code="interrupted"):
    """The user or the system interrupted a command. The message says what was done before that."""

    exit_code = 130


class SessionInUse(ResumeHooksError, code="session-open"):
    """A running client or another of our commands has the session open or may write to it."""


class NotATranscript(ResumeHooksError, code="not-a-transcript"):
    """The file is not a transcript of Claude Code."""


class ImportFailed(ResumeHooksError, code="import-failed"):
    """The file or page to import could not be read, or is too large. Nothing was written."""


class RecordNestedTooDeeply(ResumeHooksError, code="too-deep"):
    """A transcript's record is nested too deeply to be written again."""


class OutputFailed(ResumeHooksError, code="output-failed"):
    """The answer could not be printed, although the command completed."""


class CheckFailed(ResumeHooksError, code="check-failed"):
    """A new session failed a check after it was written. Its file was removed."""


class WriteFailed(ResumeHooksError, code="write-failed"):
    """A file could not be written. No partly written file remains."""


class HeadlessFailed(ResumeHooksError, code="headless-failed"):
    """The model gave no usable answer. The message says why.

    ``cost_usd`` is the cost of the attempt in dollars, or None if the client did not report it.
    """

    def __init__(self, message: str, remedy: str = "", cost_usd: float | None = None) -> None:
        super().__init__(message, remedy)
        self.cost_usd = cost_usd


class VaultOff(ResumeHooksError, code="vault-off"):
    """Archiving is off, by a setting or by an employer's retention policy."""


class OnlyArchived(ResumeHooksError, code="only-kept"):
    """Only an archived copy of the session exists, and no verb may change that copy.

    The session can be resumed after it has been restored.
    """


class PlanOutdated(ResumeHooksError, code="plan-outdated"):
    """A plan names contents of a session that no longer exist or that have changed."""


class IndexDamaged(ResumeHooksError, code="index-damaged"):
    """The search index can't be read and must be rebuilt."""


class IndexUnusable(ResumeHooksError, code="index-unusable"):
    """The search index can't be written (a read-only or full disk), or a newer version wrote it."""


_DISK_ERROR_NUMBERS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""The errors of a full disk, an exceeded quota, a file that is too large, and a read-only disk."""

DISK_FAILURE_REMEDY = (
    "No session was changed. Check that the disk has free space and is writable, then try again."
)


def convert_disk_error(error: Exception) -> WriteFailed | None:
    """If the user's disk caused ``error``, return a WriteFailed that describes it, else None."""
    if not isinstance(error, OSError) or error.errno not in _DISK_ERROR_NUMBERS:
        return None
    return WriteFailed(
        f"Could not write {error.filename or 'a file'}: {error.strerror}",
        DISK_FAILURE_REMEDY,
    )
