"""A team's sessions, and one's own on other machines, in a PostgreSQL of theirs: push, resume, search, share, forget.

Nothing here runs before a team was joined; ``psycopg`` is imported in ``connect`` alone, when a
connection is opened.

What leaves is redacted first, then cut into pieces of whole lines, numbered as in the file; words
are taken of the redacted line. A piece is taken only by who knows the digest of all that came
before it, so that sending twice changes nothing, and what was rewritten is a new generation, never
a merge. Whoever may read a row is decided in the database.
"""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Check, Option, Part, Verb

PART = Part(
    verbs=(
        Verb(
            "team",
            "Push, pull, resume, search and share sessions on your team's PostgreSQL.",
            before="fsck",
        ),
    ),
    options=(
        Option(
            "lineage",
            ("--team",),
            "Ask the team's server for ancestors that are not here.",
            "verbs.team_answer:team_lineage",
        ),
        Option(
            "search",
            ("--team",),
            "Ask the team's server instead; answers as `team search` does.",
            "verbs.team_answer:answer_search",
        ),
    ),
    checks=(Check("team", "answers:check", before="clipboard"),),
    answers=(
        Answer(questions.notes_after_delete, "answers:after_delete"),
        Answer(questions.notes_after_scrub, "answers:after_scrub"),
        Answer(questions.line_at_start, "team_file:unpushed"),
        Answer(questions.work_after_start, "answers:after_start"),
        Answer(questions.push_after_turn, "background:main"),
        Answer(questions.needs_driver, "team_file:joined_team"),
        Answer(questions.session_store, "sdk_store:PostgresSessionStore"),
    ),
)
