"""Find secrets in a session and all copies of it, and remove them; ``redaction`` has the rules."""

from __future__ import annotations

from resume_hooks.part import FormerVerb, Part, Verb

PART = Part(
    verbs=(
        Verb(
            "scrub",
            "Remove secrets: in a child, or in place and from every copy; --list shows the secrets.",
            before="doctor",
        ),
    ),
    former_verbs=(FormerVerb("audit", "scrub --list"),),
)
