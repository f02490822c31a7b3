"""Plan a child without secrets: a new session with the parent's conversation.

The parent is not changed. The separate files with the parent's large outputs are copied to the
child without their secrets, and the child refers to the copies.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from resume_hooks.derive import agents
from resume_hooks.derive.child.draft import make_draft
from resume_hooks.derive.child.inherited_metadata import (
    copy_lines_about_replaced_results,
    copy_lines_after_chain,
)
from resume_hooks.derive.child.rewrite_chain import Edit, make_parent_scan, plan_chain_rewrite
from resume_hooks.derive.child.write_child import COPY_WITHOUT_SECRETS_KIND, ChildPlan, Sizes
from resume_hooks.errors import NothingToFork
from resume_hooks.parts.secrets.cleaner import SecretCleaner
from resume_hooks.parts.secrets.locations import OWN_SESSION, SIDECAR, Location, list_regular_files
from resume_hooks.parts.secrets.purge import write_scrubbed_file
from resume_hooks.paths import TRANSCRIPT_SUFFIX, Where
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import convert_os_error
from resume_hooks.transcripts.invariants import Check, ChildObserver
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import ASSISTANT, Record, list_blocks, replace_content
from resume_hooks.transcripts.transcript import scan_live_records, scan_transcript
from resume_hooks.transcripts.trimmable_pieces import PieceCollector
from resume_hooks.transcripts.write_scan import CopyPreparationObserver

UNCOPIED_BACKUPS_WARNING = (
    "File backups with secrets were not copied ({count}), so rewind-files can't restore these "
    "versions in the child."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubPlan(ChildPlan):
    """The plan for creating a child without secrets.

    ``copied_record_ids`` contains the ids of the records that are copied from the parent.
    """

    cleaner: SecretCleaner
    copied_record_ids: tuple[str, ...]

    def run_checks(self, path: str) -> list[Check]:
        """Return the results of the checks that every child gets, and of two additional checks.

        The additional checks are that the child contains no secret, and that it contains every
        record of the conversation.
        """
        copied_ids = set(self.copied_record_ids)
        written_chain = tuple(
            node.uuid for node in scan_transcript(path).chain if node.uuid in copied_ids
        )
        return [
            *ChildPlan.run_checks(self, path),
            Check(
                "no secret was found in it",
                not self.cleaner.file_has_secret(path, is_read_by_line=True),
            ),
            Check(
                "every record of the conversation is present, in the original order",
                written_chain == self.copied_record_ids,
            ),
        ]

    @contextlib.contextmanager
    def write_sidecars(self, where: Where) -> Iterator[list[str]]:
        """Write the child's separate files, with all secrets removed from them.

        A file backup for ``rewind-files`` that contains a secret is not written.
        """
        with ChildPlan.write_sidecars(self, where) as missed_paths:
            with convert_os_error("The session's other files could not be scrubbed"):
                dropped_count = self._scrub_sidecars(where)
            if dropped_count:
                missed_paths.append(UNCOPIED_BACKUPS_WARNING.format(count=f"{dropped_count:,}"))
            yield missed_paths

    def _scrub_sidecars(self, where: Where) -> int:
        """Remove the secrets from the child's separate files, and delete file backups that contain secrets.

        Return the number of deleted backups. Raise OSError or WriteFailed if a file cannot be changed.
        """
        child_id, dropped_count = self.draft.session_id, 0
        for path in list_regular_files(self.draft.path.removesuffix(TRANSCRIPT_SUFFIX)):
            write_scrubbed_file(Location(SIDECAR, path, child_id, OWN_SESSION), self.cleaner, where)
        for path in list_regular_files(os.path.join(where.file_history, child_id)):
            if any(
                cleaned_chunk.removed_secrets or cleaned_chunk.has_unremovable_secret
                for cleaned_chunk in self.cleaner.read_cleaned_chunks(path, is_read_by_line=False)
            ):
                removal.remove_file(path, where.file_history, follow_root=True)
                dropped_count += 1
        return dropped_count


def plan_scrubbed_child(
    session: SessionFile, where: Where, cleaner: SecretCleaner, *, output_dir: str | None = None
) -> ChildPlan:
    """Plan a child without secrets for a session of any agent.

    Raise NothingToFork if the session has no conversation, and UsageError if the session cannot be
    a parent.
    """
    if session.agent != CLAUDE_NAME:
        clean_bytes = lambda raw: cleaner.clean_record(raw).cleaned_bytes  # noqa: E731 - the cleaner as one function
        return agents.load_foreign_writer(session.agent, where).plan_cleaned_copy(
            session, clean_bytes, COPY_WITHOUT_SECRETS_KIND, output_dir
        )
    transcript, (survey, read_back, trimmed_pieces, thinking_edits) = scan_live_records(
        session.path,
        lambda: (
            CopyPreparationObserver(),
            ChildObserver(),
            PieceCollector(),
            _ThinkingBlockRemover(cleaner),
        ),
    )
    if not any(node.is_message for node in transcript.chain):
        raise NothingToFork(
            "There is nothing to copy: this session has no conversation",
            "To rewrite its file anyway: resume-hooks scrub --in-place",
        )
    measured_parent = make_parent_scan(session, transcript, survey, read_back, trimmed_pieces)
    child = make_draft(
        session, measured_parent.head_tail, COPY_WITHOUT_SECRETS_KIND, where, output_dir
    )
    child = child._replace(
        root_title=cleaner.clean_generated_text(child.root_title),
        lineage_text=cleaner.clean_generated_text(child.lineage_text),
    )
    child_id = child.session_id
    metadata = [
        *copy_lines_about_replaced_results(transcript, survey, child_id),
        *copy_lines_after_chain(transcript, survey, measured_parent.head_tail, child_id),
    ]
    old_path, new_path = (
        f"/{session_id}/tool-results/".encode() for session_id in (session.session_id, child_id)
    )

    def clean_line(body: bytes, _: Node | None = None) -> bytes:
        """Return a line without secrets. Paths of large outputs are changed to those of the child's files.

        If the line contains a thinking block, its paths still lead to the parent's files, because
        any change would make the block's signature invalid.
        """
        cleaned_line = cleaner.clean_record(body).cleaned_bytes
        if b'"thinking"' in cleaned_line:
            return cleaned_line
        return cleaned_line.replace(old_path, new_path)

    body = plan_chain_rewrite(
        child,
        transcript,
        survey,
        first_line=child.make_first_line(
            measured_parent.make_child_size(measured_parent.context.tokens)
        ),
        edits=thinking_edits.edits,
        metadata_lines=[clean_line(row) for row in metadata],
        line_edit=clean_line,
        allowed_thinking_hashes=frozenset(read_back.thinking_hashes),
    )
    return ScrubPlan(
        draft=child,
        body=body,
        sizes=Sizes(measured_parent.context.tokens, measured_parent.context.tokens),
        cleaner=cleaner,
        copied_record_ids=tuple(
            node.uuid
            for node in body.linear_chain.nodes
            if node.line_number not in thinking_edits.removed_lines
        ),
    )


class _ThinkingBlockRemover:
    """Observes a transcript and collects edits for records whose thinking contains a secret.

    ``edits`` maps the line number of each such record to a function that removes the thinking. If a
    record has no other content, the record is removed, and ``removed_lines`` contains its line
    number.
    """

    def __init__(self, cleaner: SecretCleaner) -> None:
        self.edits: dict[int, Edit] = {}
        self.removed_lines: set[int] = set()
        self._cleaner = cleaner

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        """Collect the edit for a record if its thinking contains a secret."""
        if node is None or node.kind != ASSISTANT:
            return
        content_blocks = list_blocks(record)
        remaining_blocks = []
        for block in content_blocks:
            if not self._cleaner.collect_thinking_secrets(block, []):
                remaining_blocks.append(block)
        if len(remaining_blocks) < len(content_blocks):
            self.edits[node.line_number] = self._remove_thinking_with_secrets
            self.removed_lines |= set() if remaining_blocks else {node.line_number}

    def _remove_thinking_with_secrets(self, record: Record) -> Record | None:
        remaining_blocks = []
        for block in list_blocks(record):
            if not self._cleaner.collect_thinking_secrets(block, []):
                remaining_blocks.append(block)
        if remaining_blocks:
            return replace_content(record, remaining_blocks)
        return None
