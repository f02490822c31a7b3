"""The tree of expected failures; each one can say what happened, where, and what to do about it."""

from __future__ import annotations


class ResumeHooksError(Exception):
    """Base of every failure that a user may meet and that is not a bug.

    ``code`` is the stable name used in ``--json`` and ``exit_code`` what the shell gets.
    """

    code = "failed"
    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(ResumeHooksError):
    """What was typed does not name something that can be done."""

    code = "usage"
    exit_code = 2


class AmbiguousLocator(UsageError):
    """A locator fits several sessions; ``candidates`` are rows of the newest of them, ``count`` all there are.

    A row has what names the session in ``session_id``, or in ``locator`` where the id alone does not.
    """

    code = "ambiguous-locator"

    def __init__(
        self,
        locator: str,
        candidates: list[dict[str, object]],
        count: int = 0,
        remedy: str = "Use more of the id, or the path of the file.",
    ) -> None:
        self.locator = locator
        self.candidates = candidates
        self.count = count or len(candidates)
        super().__init__(f"'{locator}' fits {self.count} sessions", remedy)


class SessionNotFound(ResumeHooksError):
    """No session answers to a locator."""

    code = "session-not-found"


class NothingToHandOff(ResumeHooksError):
    """The session holds no turn of its own, so a child of it would carry nothing."""

    code = "nothing-to-hand-off"


class NothingToRecover(ResumeHooksError):
    """Nothing was asked or done in the session, so nothing of it can be given back."""

    code = "nothing-to-recover"


class NothingToTrim(ResumeHooksError):
    """The session holds no conversation, so there is nothing that could be trimmed."""

    code = "nothing-to-trim"


class NothingToFork(ResumeHooksError):
    """The session holds no conversation, so a copy of it would hold none."""

    code = "nothing-to-fork"


class NothingToMark(ResumeHooksError):
    """The session holds no word yet, so there is no place in it to come back to."""

    code = "nothing-to-mark"


class InSubagent(UsageError):
    """A checkpoint was asked for, or gone back to, in a sub-agent, whose transcript nobody resumes."""

    code = "in-subagent"

    def __init__(self) -> None:
        super().__init__("Checkpoint not available in subagents.", "Use it in the session that started the sub-agent.")


class NoCheckpoint(ResumeHooksError):
    """The session has no checkpoint to go back to."""

    code = "no-checkpoint"


class TitleTaken(ResumeHooksError):
    """Another session of the project has the title; titles are locators and stay unique."""

    code = "title-taken"


class PlaceTaken(ResumeHooksError):
    """Where a session is to be brought back to, something else is by now; nothing was moved."""

    code = "place-taken"


class NoFileHistory(ResumeHooksError):
    """The client kept no states of the user's files, or none that could be gone back to."""

    code = "no-file-history"


class CantRestore(ResumeHooksError):
    """Some files can't be put back as they were, and nothing was done because of it."""

    code = "cant-restore"


class Interrupted(ResumeHooksError):
    """The user, or the system, ended a command in the middle; the message says how far it came."""

    code = "interrupted"
    exit_code = 130


class SessionLive(ResumeHooksError):
    """A session that is, or may be, written by a running client, or by another of our own commands."""

    code = "session-live"


class NotATranscript(ResumeHooksError):
    """The file is no transcript of Claude Code."""

    code = "not-a-transcript"


class ImportFailed(ResumeHooksError):
    """What was to be imported could not be fetched or read, or is larger than was allowed; nothing was written."""

    code = "import-failed"


class TooDeep(ResumeHooksError):
    """A record of a transcript nests deeper than it could be written again."""

    code = "too-deep"


class OutputFailed(ResumeHooksError):
    """The answer could not be printed; what it speaks of was done all the same."""

    code = "output-failed"


class CheckFailed(ResumeHooksError):
    """A written session broke an invariant as read back; the file is already removed."""

    code = "check-failed"


class WriteFailed(ResumeHooksError):
    """The file system refused a write; nothing was left behind."""

    code = "write-failed"


class HeadlessFailed(ResumeHooksError):
    """The headless model gave no answer that can be used; the message says which way it failed.

    ``cost_usd`` is what it took all the same, None where the client does not say.
    """

    code = "headless-failed"

    def __init__(self, message: str, remedy: str = "", cost_usd: float | None = None) -> None:
        super().__init__(message, remedy)
        self.cost_usd = cost_usd


class VaultOff(ResumeHooksError):
    """Sessions may not be kept: the setting says so, or a retention that an employer manages."""

    code = "vault-off"


class OnlyKept(ResumeHooksError):
    """Of the session only the kept copy is left, which no verb changes; restored, it can be gone on in again."""

    code = "only-kept"


class PlanOutdated(ResumeHooksError):
    """A plan that was shown names contents that are not in the session, or not as they were."""

    code = "plan-outdated"
