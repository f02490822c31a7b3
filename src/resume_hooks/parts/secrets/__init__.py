"""Find secrets, such as API keys, in a session and in all copies of it, and remove them.

The rules for recognising secrets are in the package ``redaction``.
"""

from __future__ import annotations

from resume_hooks.part import FormerVerb, Part, Verb

PART = Part(
    verbs=(
        Verb(
            "scrub",
            "Remove secrets in a new child, or in place from the session and all its copies; --list shows them.",
            insert_before="doctor",
        ),
    ),
    former_verbs=(FormerVerb("audit", "scrub --list"),),
)
