"""The texts of triggers that need no transcript. Standard library, Python 3.9: the fallback shows them too."""

from __future__ import annotations

from resume_hooks.system.clipboard import Copied

HELP = """resume-hooks: type these at the very start of a prompt; all but rollover cost no tokens

  /resume-hooks:handoff [next step]   or  >handoff [next step]
      go on in a fresh session that knows its ancestors
  /resume-hooks:rollover [focus]      or  >rollover [focus]
      the same with a summary by a model: costs tokens, takes a minute
  /resume-hooks:trim [options]        or  >trim [options]
      show what a copy without the bulk would save; then: trim yes
  /resume-hooks:resume                or  >resume, >continue
      copy this session's id; how full it is, and what to do
  /resume-hooks:checkpoint [goal]     or  >checkpoint [goal]
      mark this place before you try something
  /resume-hooks:rewind report         or  >rewind report
      go back to the mark in a session that keeps only the report
  /resume-hooks:search words          or  >search words
      what was said in this project's sessions; --all first: everywhere
  /resume-hooks:session               or  >session, >session-id
      copy this session's id
  /resume-hooks:lineage               or  >lineage
      this session's ancestors
  /resume-hooks:recover-context       or  >recover-context
      what was done here, to paste where the model lost it
  /resume-hooks:help                  or  >help

In a shell: resume-hooks --help
A space before > sends a plain prompt."""

_PASTED = "resume-hooks: nothing was made. The command was pasted over text left in the input box."


def pasted_card(text: str) -> str:
    """A command pasted over a trigger; ``text`` is what stood between the two, so that nothing is lost."""
    kept = f"\n\n  Your text: {text}" if text else ""
    return f"{_PASTED}{kept}\n\nPress Ctrl+C once, then paste again."


def session_card(session_id: str, copied: Copied, text: str = "") -> str:
    """``>session``: the id, and whether it was copied; ``text`` is what was typed after ``>resume``."""
    said = f"resume-hooks · {copied.sentence('session id')}\n\n  {session_id}"
    return f"{said}{offer(text)}\n\n{id_line(copied)}"


def offer(text: str) -> str:
    """The user's words as the handoff that they may have meant, ``""`` for none: no text is thrown away."""
    return f"\n\n  Your text was not sent. To hand off with it as the next step:\n  >handoff {text}" if text else ""


def id_line(copied: Copied) -> str:
    """The last line of a card that copied an id."""
    lines = {"copied": "ID copied.", "sent": "ID sent, unconfirmed."}
    return lines.get(copied.how, "Not copied: the id is above.")
