"""Define the facts that are planted into a session of many generations.

There are five kinds of facts. Each fact has a subject and a value, and some facts get new values.
No subject is part of another subject, and no value of a fact is part of another value of the same
fact. A sentence with the subject and the value therefore states the fact.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

GENERATION_COUNT = 5
LATE_FACT_COUNT = 4
"""The number of facts of each kind that are first stated after a handoff, one in each generation.
"""

CHANGING_FACT_COUNT = 6
"""The number of facts of each kind that later get a new value. The first of them gets two."""


class Wording(NamedTuple):
    """The sentences that state facts of a kind, and these facts.

    ``first_sentences`` state the first value of a fact, and ``change_sentences`` state a new value.
    ``fact_lines`` has a line for each fact, with its subject and its values.
    """

    first_sentences: Sequence[str]
    change_sentences: Sequence[str]
    fact_lines: str


class Statement(NamedTuple):
    """A sentence that states a value of a subject, and the generation in which it is stated."""

    sentence: str
    value: str
    generation: int
    is_by_assistant: bool = False


class Fact(NamedTuple):
    """A subject and the statements about it, oldest first. The value of the last statement is current."""

    kind: str
    subject: str
    statements: Sequence[Statement]

    @property
    def current_value(self) -> str:
        """The current value."""
        return self.statements[-1].value

    @property
    def old_values(self) -> list[str]:
        """The earlier values."""
        return [statement.value for statement in self.statements[:-1]]


WORDING_BY_FACT_KIND: Mapping[str, Wording] = {
    "constraint": Wording(
        (
            "The {s} must stay at {v}.",
            "Keep the {s} at {v}.",
            "Please make sure that the {s} is at most {v}.",
        ),
        (
            "Actually, the {s} must be {v}.",
            "From now on the {s} is {v}.",
            "The {s} must stay at {v}.",
        ),
        """retry budget of the importer: 7 attempts, 9 attempts, 11 attempts
           timeout of the login call: 250 ms, 400 ms
           size of an upload: 64 MB, 96 MB
           batch size of the mailer: 500 rows, 350 rows
           cache of the thumbnails: 2 GB, 3 GB
           length of a ticket title: 120 characters, 90 characters
           cold start of the worker: 800 ms
           bundle of the admin pages: 310 kB
           number of open connections: 40
           coverage of the billing module: 85 percent
           nesting of the parser: 12 levels
           page size of the audit log: 75 entries
           runtime of the smoke tests: 90 seconds
           column width of the reports: 96 signs
           heap of the indexer: 1536 MB
           pause between two polls: 15 seconds
           depth of the dependency tree: 6
           number of feature flags: 28
           age of a session token: 45 minutes
           queue of the renderer: 220 jobs""",
    ),
    "fact": Wording(
        ("The {s} is {v}.", "By the way, the {s} is {v}.", "FYI: the {s} is {v}."),
        ("Correction: the {s} is {v}.", "The {s} is now {v}.", "The {s} is {v}."),
        """port of the staging database: 6543, 7001, 7420
           owner of the payments service: Ilse Brandt, Marco Tessari
           version of the message broker: 3.12.4, 3.13.1
           host of the build cache: cache-07.internal, cache-11.internal
           branch of the release train: release/2026.1, release/2026.2
           bucket of the exports: acme-exports-eu, acme-exports-us
           name of the legacy table: tbl_cust_old
           region of the replica: eu-north-1
           chat channel of the on-call team: #ops-nights
           path of the license file: etc/acme.lic
           format of the price feed: NDJSON
           user of the cron jobs: svc-nightly
           prefix of the internal packages: acme-int
           runner of the arm builds: graviton-3
           database of the feature store: DuckDB
           locale of the demo tenant: pt_BR
           encoding of the bank files: ISO-8859-15
           mirror of the registry: mirror.acme.dev
           tool for the load tests: k6
           epoch of the event ids: 2019-04-01""",
    ),
    "goal": Wording(
        (
            "The goal is to get the {s} to {v}.",
            "I want the {s} to reach {v}.",
            "We need to bring the {s} to {v}.",
        ),
        (
            "Actually, the goal for the {s} is {v}.",
            "From now on the goal for the {s} is {v}.",
            "Make it {v} for the {s}.",
        ),
        """duration of the nightly export: 12 minutes, 8 minutes, 5 minutes
           share of flaky tests: 1 percent, 2 percent
           first paint of the dashboard: 900 ms, 700 ms
           number of lint warnings: 50, 20
           size of the container image: 180 MB, 140 MB
           lag of the search index: 30 seconds, 10 seconds
           accuracy of the classifier: 94 percent
           startup of the CLI: 120 ms
           monthly bill of the sandbox: 400 dollars
           recall of the deduplication: 97 percent
           latency of the quote endpoint: 85 ms
           memory of the sync agent: 256 MB
           age of the oldest open ticket: 14 days
           number of manual deploy steps: 3
           throughput of the importer: 9000 rows a second
           build time on CI: 6 minutes
           error rate of the webhook: 0.2 percent
           uptime of the status page: 99.95 percent
           typed part of the codebase: 88 percent
           number of supported browsers: 5""",
    ),
    "preference": Wording(
        (
            "I prefer {v} for the {s}.",
            "For the {s} I like {v} better.",
            "My preference for the {s}: {v}.",
        ),
        (
            "I changed my mind: I prefer {v} for the {s}.",
            "Actually, I prefer {v} for the {s}.",
            "For the {s} use {v} instead.",
        ),
        """commit messages: imperative mood, past tense, plain nouns
           configuration files: TOML, YAML
           variable names of the SDK: snake_case, camelCase
           charts of the weekly review: bars, lines
           test layout: one folder per module, a flat folder
           log output: JSON lines, key=value pairs
           icons of the sidebar: outlined ones
           dates in the interface: day before month
           error texts: short sentences without codes
           diagrams: Mermaid
           indentation of the templates: two spaces
           comments in the migrations: English
           names of the branches: a ticket number in front
           order of imports: standard library first
           release notes: a table per component
           review comments: questions over orders
           mock data: names from chess openings
           shell scripts: POSIX sh
           headings of the manual: sentence case
           code samples: complete programs""",
    ),
    "safety rule": Wording(
        (
            "Never run the {s} outside {v}.",
            "Do not use the {s} on anything but {v}.",
            "Always limit the {s} to {v}.",
        ),
        (
            "From now on limit the {s} to {v}.",
            "Actually, never run the {s} outside {v}.",
            "Always limit the {s} to {v}.",
        ),
        """purge job: the host scratch-19, the host scratch-23, the host scratch-31
           restore script: the database copy_b, the database copy_d
           key rotation: Tuesdays, Thursdays
           bulk mailer: the list internal-qa, the list internal-dev
           chaos monkey: the namespace drill-2, the namespace drill-5
           schema migration tool: the window 02:00-04:00, the window 03:00-05:00
           cache flush: the cluster blue-4
           traffic replay: the tenant test-77
           root shell: the bastion jump-3
           fuzzer: the sandbox fz-12
           rebase helper: branches under tmp/
           token printer: the vault dev-only
           data masker: the schema public_demo
           load generator: 4 workers
           reindex command: the shard s-09
           billing simulator: invoices under 10 euros
           log shredder: files older than 180 days
           disk cleaner: the mount /mnt/scrap
           feature toggler: the ring canary-1
           image pruner: tags that begin with ci-""",
    ),
}

KNOWN_CHANGE_SENTENCES = (
    "Forget what I said about the {s}, it is {v}.",
    "Let's change the {s} to {v}.",
    "I was wrong about the {s}: {v} it is.",
    "{v} is what we agreed on for the {s} today.",
    "We moved the {s} to {v} this morning.",
    "New rule for the {s}: {v}.",
)
"""The ways to state a new value of any kind."""

UNSEEN_CHANGE_SENTENCES = (
    "Bump the {s} to {v}, please.",
    "The {s}: {v} now, not what I told you earlier.",
    "Marketing insists on {v} for the {s}.",
    "As of today the {s} is {v}.",
    "The {s} got {v} as its new value.",
    "You can set {v} for the {s} after all.",
)
"""Other ways to state a new value. They were not known when the rules for superseded values were
made."""


def make_planted_facts(
    random_source: random.Random, *, in_unseen_words: bool = False
) -> list[Fact]:
    """Return all facts, ordered by kind.

    With ``in_unseen_words``, new values are stated only by sentences of ``UNSEEN_CHANGE_SENTENCES``.
    """
    found: list[Fact] = []
    for kind, wording in WORDING_BY_FACT_KIND.items():
        changed = (
            UNSEEN_CHANGE_SENTENCES
            if in_unseen_words
            else (*wording.change_sentences, *KNOWN_CHANGE_SENTENCES)
        )
        found += _make_facts(kind, wording._replace(change_sentences=changed), random_source)
    return found


def _make_facts(kind: str, wording: Wording, random_source: random.Random) -> Iterator[Fact]:
    rows = [row.strip() for row in wording.fact_lines.split("\n")]
    late = dict(
        zip(
            random_source.sample(range(CHANGING_FACT_COUNT, len(rows)), LATE_FACT_COUNT),
            range(1, GENERATION_COUNT),
            strict=True,
        )
    )
    for at, row in enumerate(rows):
        subject, _, values = row.partition(": ")
        first, *others = values.split(", ")
        generations = sorted(random_source.sample(range(1, GENERATION_COUNT), len(others)))
        sentence = random_source.choice(wording.first_sentences).format(s=subject, v=first)
        # The assistant states every second plain fact, as if it had found the fact out.
        by_assistant = kind == "fact" and at % 2 == 1
        statements = [Statement(sentence, first, late.get(at, 0), by_assistant)]
        for value, generation in zip(others, generations, strict=True):
            changed = random_source.choice(wording.change_sentences).format(s=subject, v=value)
            statements.append(Statement(changed, value, generation))
        yield Fact(kind, subject, statements)
