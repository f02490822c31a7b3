"""Lets mypy check the functions of parts that are loaded by name. Made by ``make docs``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from resume_hooks import questions
from resume_hooks.seam import Function, Question

if TYPE_CHECKING:
    import resume_hooks.derive.claude_writer
    import resume_hooks.derive.model.headless
    import resume_hooks.parts.attribution.line_search
    import resume_hooks.parts.codex.defects
    import resume_hooks.parts.codex.model
    import resume_hooks.parts.codex.sessions.strategy
    import resume_hooks.parts.codex.writer
    import resume_hooks.parts.documents.document_folders
    import resume_hooks.parts.documents.requested_files
    import resume_hooks.parts.lost.strategy
    import resume_hooks.parts.marks.state
    import resume_hooks.parts.marks.trigger_answers
    import resume_hooks.parts.moved.copies
    import resume_hooks.parts.moved.find_moved_repo
    import resume_hooks.parts.moved.rehome
    import resume_hooks.parts.moved.verbs.other_copies
    import resume_hooks.parts.share.verbs.import_
    import resume_hooks.parts.smart_trim.trigger_answers
    import resume_hooks.parts.smart_trim.verbs
    import resume_hooks.parts.subagents.as_session
    import resume_hooks.parts.subagents.verbs
    import resume_hooks.parts.team.answers
    import resume_hooks.parts.team.background
    import resume_hooks.parts.team.sdk_store
    import resume_hooks.parts.team.team_file
    import resume_hooks.parts.team.verbs.team_answer
    import resume_hooks.sessions.agents.claude


def accept_fitting_function(_: Question[Function]) -> Callable[[Function], None]:
    """Return a function that accepts only a function of the question's type."""
    return lambda _: None


if TYPE_CHECKING:
    accept_fitting_function(questions.agent_defects)(
        resume_hooks.parts.codex.defects.find_thread_defects
    )
    accept_fitting_function(questions.agent_model)(
        resume_hooks.derive.model.headless.make_headless_model
    )
    accept_fitting_function(questions.agent_model)(resume_hooks.parts.codex.model.CodexExec)
    accept_fitting_function(questions.agent_strategy)(
        resume_hooks.parts.codex.sessions.strategy.Codex
    )
    accept_fitting_function(questions.agent_strategy)(resume_hooks.parts.lost.strategy.LostPrompts)
    accept_fitting_function(questions.agent_strategy)(resume_hooks.sessions.agents.claude.Claude)
    accept_fitting_function(questions.agent_writer)(resume_hooks.derive.claude_writer.ClaudeWriter)
    accept_fitting_function(questions.answer_line_search)(
        resume_hooks.parts.attribution.line_search.answer_line_search
    )
    accept_fitting_function(questions.answer_smart_trim)(
        resume_hooks.parts.smart_trim.trigger_answers.answer_smart_trim
    )
    accept_fitting_function(questions.answer_trigger)(
        resume_hooks.parts.marks.trigger_answers.answer_request
    )
    accept_fitting_function(questions.check_handoff_option)(
        resume_hooks.parts.documents.requested_files.require_out_for_force
    )
    accept_fitting_function(questions.check_handoff_option)(
        resume_hooks.parts.documents.requested_files.require_out_value
    )
    accept_fitting_function(questions.delete_sessions_with_part_option)(
        resume_hooks.parts.moved.verbs.other_copies.delete_other_copies
    )
    accept_fitting_function(questions.do_work_after_start)(
        resume_hooks.parts.team.answers.push_unsent_sessions
    )
    accept_fitting_function(questions.document_folders_and_extensions)(
        resume_hooks.parts.documents.document_folders.find_document_folder_and_suffix
    )
    accept_fitting_function(questions.find_lineage_with_part_option)(
        resume_hooks.parts.team.verbs.team_answer.read_team_lineage
    )
    accept_fitting_function(questions.foreign_agent_writer)(
        resume_hooks.parts.codex.writer.CodexWriter
    )
    accept_fitting_function(questions.import_file)(
        resume_hooks.parts.share.verbs.import_.import_file
    )
    accept_fitting_function(questions.is_content_loss)(
        resume_hooks.parts.codex.defects.is_content_loss
    )
    accept_fitting_function(questions.likely_folders_of_session)(
        resume_hooks.parts.moved.find_moved_repo.find_likely_new_folders
    )
    accept_fitting_function(questions.line_at_start)(
        resume_hooks.parts.team.team_file.report_push_failure
    )
    accept_fitting_function(questions.line_at_start_in_new_folder)(
        resume_hooks.parts.moved.rehome.format_start_line
    )
    accept_fitting_function(questions.line_of_trim_help)(
        resume_hooks.parts.smart_trim.trigger_answers.format_help_line
    )
    accept_fitting_function(questions.list_sessions_with_part_option)(
        resume_hooks.parts.subagents.verbs.print_subagents
    )
    accept_fitting_function(questions.make_handoff_file_writer)(
        resume_hooks.parts.documents.requested_files.plan_requested_files
    )
    accept_fitting_function(questions.module_line_in_new_folder)(
        resume_hooks.parts.moved.rehome.format_start_line_after_search
    )
    accept_fitting_function(questions.needs_database_driver)(
        resume_hooks.parts.team.team_file.read_team
    )
    accept_fitting_function(questions.note_on_lost_sessions)(
        resume_hooks.parts.lost.strategy.build_note_on_lost_sessions
    )
    accept_fitting_function(questions.note_on_other_sessions)(
        resume_hooks.parts.moved.rehome.format_other_sessions_note
    )
    accept_fitting_function(questions.note_on_session)(
        resume_hooks.parts.moved.copies.format_copies_note
    )
    accept_fitting_function(questions.note_on_written_files)(
        resume_hooks.parts.documents.document_folders.note_on_written_files
    )
    accept_fitting_function(questions.notes_after_delete)(
        resume_hooks.parts.marks.state.remove_mark_after_delete
    )
    accept_fitting_function(questions.notes_after_delete)(
        resume_hooks.parts.team.answers.queue_deleted_session
    )
    accept_fitting_function(questions.notes_after_scrub)(
        resume_hooks.parts.team.answers.queue_scrubbed_sessions
    )
    accept_fitting_function(questions.open_subagent_as_session)(
        resume_hooks.parts.subagents.as_session.open_subagent_as_session
    )
    accept_fitting_function(questions.plan_confirmed_trim)(
        resume_hooks.parts.smart_trim.trigger_answers.find_confirmed_trim
    )
    accept_fitting_function(questions.push_session_after_turn)(
        resume_hooks.parts.team.background.main
    )
    accept_fitting_function(questions.run_doctor_check)(
        resume_hooks.parts.lost.strategy.check_lost_prompts
    )
    accept_fitting_function(questions.run_doctor_check)(
        resume_hooks.parts.moved.copies.check_for_duplicate_sessions
    )
    accept_fitting_function(questions.run_doctor_check)(
        resume_hooks.parts.team.answers.check_pushes
    )
    accept_fitting_function(questions.search_with_part_option)(
        resume_hooks.parts.team.verbs.team_answer.answer_search
    )
    accept_fitting_function(questions.session_store)(
        resume_hooks.parts.team.sdk_store.PostgresSessionStore
    )
    accept_fitting_function(questions.trim_with_part_option)(
        resume_hooks.parts.smart_trim.verbs.refuse_without_smart
    )
    accept_fitting_function(questions.trim_with_part_option)(
        resume_hooks.parts.smart_trim.verbs.smart_trim
    )
