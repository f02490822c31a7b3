"""The texts of triggers that need no transcript. Standard library, Python 3.9: the fallback shows them too."""

from __future__ import annotations

from resume_hooks.clipboard import Copied

HELP = """resume-hooks: type these at the very start of a prompt; they cost no tokens

  /resume-hooks:handoff [next step]   or  >handoff [next step]
      go on in a fresh session that knows its ancestors
  /resume-hooks:resume                or  >resume, >continue
      copy this session's id; how full it is, and what to do
  /resume-hooks:session               or  >session, >session-id
      copy this session's id
  /resume-hooks:lineage               or  >lineage
      this session's ancestors
  /resume-hooks:help                  or  >help

In a shell: resume-hooks --help
A space before > sends it as a plain prompt."""

PASTED = """resume-hooks: nothing was made. The command was pasted over text left in the input box.

Press Ctrl+C once, then paste again."""


def session_card(session_id: str, copied: Copied) -> str:
    """``>session``: the id, and whether it was copied."""
    return f"resume-hooks · {copied.sentence('session id')}\n\n  {session_id}\n\n{id_line(copied)}"


def id_line(copied: Copied) -> str:
    """The last line of a card that copied an id."""
    lines = {"copied": "ID copied.", "sent": "ID sent to your terminal, unconfirmed."}
    return lines.get(copied.how, "Not copied: the id is above.")
