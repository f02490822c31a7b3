"""Share sessions with a team, and between your own machines, in a PostgreSQL database.

The modules of this package do nothing until you join a team. The database driver ``psycopg`` is
imported only when ``connect`` opens a connection.

A push redacts the session's lines on this machine and then sends them in numbered chunks of whole
lines. It also sends the words of the redacted lines, which the server needs for its search. With
each chunk, the client sends the digest of all previous chunks of the file, and the server rejects
the chunk if that digest is wrong. The server thus recognizes a chunk that is sent twice, and stores
it only once. If a local file was rewritten, the server does not merge it with the old copy, but
starts a new generation of the session. The database decides who may read each row.
"""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Check, Option, Part, Verb

PART = Part(
    verbs=(
        Verb(
            "team",
            "Push, pull, resume, search and share sessions on your team's PostgreSQL.",
            insert_before="fsck",
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
            "Search the team's server instead of this machine, like `team search`.",
            "verbs.team_answer:search_team_and_print_hits",
        ),
    ),
    checks=(Check("team", "answers:check_pushes", insert_before="clipboard"),),
    answers=(
        Answer(questions.notes_after_delete, "answers:queue_deletion_on_server"),
        Answer(questions.notes_after_scrub, "answers:queue_scrubbed_sessions"),
        Answer(questions.session_start_notice, "team_file:report_push_failure"),
        Answer(questions.do_work_after_start, "answers:push_unsent_sessions_if_enabled"),
        Answer(questions.push_session_after_turn, "background:main"),
        Answer(questions.find_reason_for_database_driver, "team_file:read_team"),
        Answer(questions.session_store, "sdk_store:PostgresSessionStore"),
    ),
)
