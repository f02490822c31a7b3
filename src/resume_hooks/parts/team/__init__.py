"""Share sessions with a team, and with your own machines, in a PostgreSQL database.

No code in this package runs before you join a team. The database driver ``psycopg`` is only
imported when ``connect`` opens a connection.

A session's lines are redacted on this machine, and then sent in numbered chunks of whole lines. The
words that the server needs for its search are taken from the redacted lines. The server accepts a
chunk only together with the digest of all previous chunks of the file. So a chunk that is sent
twice is stored once. A file that was rewritten is not merged with its old copy: the server starts a
new generation of the session. The database decides who may read each row.
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
            "Ask the team's server for ancestors that this machine lacks.",
            "verbs.team_answer:read_team_lineage",
        ),
        Option(
            "search",
            ("--team",),
            "Search the team's server instead, like `team search`.",
            "verbs.team_answer:answer_search",
        ),
    ),
    checks=(Check("team", "answers:check_pushes", before="clipboard"),),
    answers=(
        Answer(questions.notes_after_delete, "answers:queue_deleted_session"),
        Answer(questions.notes_after_scrub, "answers:queue_scrubbed_sessions"),
        Answer(questions.line_at_start, "team_file:report_push_failure"),
        Answer(questions.work_after_start, "answers:push_unsent_sessions"),
        Answer(questions.push_after_turn, "background:main"),
        Answer(questions.needs_driver, "team_file:read_team"),
        Answer(questions.session_store, "sdk_store:PostgresSessionStore"),
    ),
)
