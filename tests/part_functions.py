"""Lets mypy check the functions of parts that are loaded by name. Made by ``make docs``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from resume_hooks import questions
from resume_hooks.seam import Function, PartQuestion

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


def check_function_type(_: PartQuestion[Function]) -> Callable[[Function], None]:
    """Return a function that does nothing; mypy checks that its argument fits the question."""
    return lambda _: None


if TYPE_CHECKING:
    check_function_type(questions.agent_defects)(
        resume_hooks.parts.codex.defects.find_thread_defects
    )
    check_function_type(questions.agent_model)(
        resume_hooks.derive.model.headless.make_headless_model
    )
    check_function_type(questions.agent_model)(resume_hooks.parts.codex.model.CodexExec)
    check_function_type(questions.agent_strategy)(resume_hooks.parts.codex.sessions.strategy.Codex)
    check_function_type(questions.agent_strategy)(resume_hooks.parts.lost.strategy.LostPromptsAgent)
    check_function_type(questions.agent_strategy)(resume_hooks.sessions.agents.claude.Claude)
    check_function_type(questions.agent_writer)(resume_hooks.derive.claude_writer.ClaudeWriter)
    check_function_type(questions.answer_line_search)(
        resume_hooks.parts.attribution.line_search.answer_line_search
    )
    check_function_type(questions.answer_smart_trim)(
        resume_hooks.parts.smart_trim.trigger_answers.answer_smart_trim
    )
    check_function_type(questions.answer_trigger)(
        resume_hooks.parts.marks.trigger_answers.answer_request
    )
    check_function_type(questions.build_note_on_written_files)(
        resume_hooks.parts.documents.document_folders.build_note_on_written_files
    )
    check_function_type(questions.check_handoff_option)(
        resume_hooks.parts.documents.requested_files.require_out_option_with_force
    )
    check_function_type(questions.check_handoff_option)(
        resume_hooks.parts.documents.requested_files.require_path_for_out_option
    )
    check_function_type(questions.delete_sessions_with_part_option)(
        resume_hooks.parts.moved.verbs.other_copies.delete_other_copies
    )
    check_function_type(questions.do_work_after_start)(
        resume_hooks.parts.team.answers.push_unsent_sessions_if_enabled
    )
    check_function_type(questions.document_folders_and_extensions)(
        resume_hooks.parts.documents.document_folders.find_document_folder_and_suffix
    )
    check_function_type(questions.find_lineage_with_part_option)(
        resume_hooks.parts.team.verbs.team_answer.read_team_lineage
    )
    check_function_type(questions.find_reason_for_database_driver)(
        resume_hooks.parts.team.team_file.read_team
    )
    check_function_type(questions.foreign_agent_writer)(resume_hooks.parts.codex.writer.CodexWriter)
    check_function_type(questions.import_file)(resume_hooks.parts.share.verbs.import_.import_file)
    check_function_type(questions.is_content_loss)(resume_hooks.parts.codex.defects.is_content_loss)
    check_function_type(questions.likely_folders_of_session)(
        resume_hooks.parts.moved.find_moved_repo.find_likely_new_folders
    )
    check_function_type(questions.line_of_trim_help)(
        resume_hooks.parts.smart_trim.trigger_answers.format_smart_trim_help_line
    )
    check_function_type(questions.list_sessions_with_part_option)(
        resume_hooks.parts.subagents.verbs.print_subagents
    )
    check_function_type(questions.make_handoff_file_writer)(
        resume_hooks.parts.documents.requested_files.make_document_writer
    )
    check_function_type(questions.note_on_lost_sessions)(
        resume_hooks.parts.lost.strategy.build_note_on_lost_sessions
    )
    check_function_type(questions.note_on_other_sessions)(
        resume_hooks.parts.moved.rehome.format_other_sessions_note
    )
    check_function_type(questions.note_on_session)(
        resume_hooks.parts.moved.copies.format_copies_note
    )
    check_function_type(questions.notes_after_delete)(
        resume_hooks.parts.marks.state.remove_mark_after_delete
    )
    check_function_type(questions.notes_after_delete)(
        resume_hooks.parts.team.answers.queue_deletion_on_server
    )
    check_function_type(questions.notes_after_scrub)(
        resume_hooks.parts.team.answers.queue_scrubbed_sessions
    )
    check_function_type(questions.notice_after_search_in_new_folder)(
        resume_hooks.parts.moved.rehome.format_moved_folder_notice_after_search
    )
    check_function_type(questions.open_subagent_as_session)(
        resume_hooks.parts.subagents.as_session.open_subagent_as_session
    )
    check_function_type(questions.plan_confirmed_trim)(
        resume_hooks.parts.smart_trim.trigger_answers.find_confirmed_trim
    )
    check_function_type(questions.push_session_after_turn)(resume_hooks.parts.team.background.main)
    check_function_type(questions.run_doctor_check)(
        resume_hooks.parts.lost.strategy.check_for_lost_prompts
    )
    check_function_type(questions.run_doctor_check)(
        resume_hooks.parts.moved.copies.check_for_duplicate_sessions
    )
    check_function_type(questions.run_doctor_check)(resume_hooks.parts.team.answers.check_pushes)
    check_function_type(questions.search_with_option_of_part)(
        resume_hooks.parts.team.verbs.team_answer.search_team_and_print_hits
    )
    check_function_type(questions.session_start_notice)(
        resume_hooks.parts.team.team_file.report_push_failure
    )
    check_function_type(questions.session_store)(
        resume_hooks.parts.team.sdk_store.PostgresSessionStore
    )
    check_function_type(questions.start_notice_in_new_folder)(
        resume_hooks.parts.moved.rehome.format_moved_folder_notice
    )
    check_function_type(questions.trim_with_part_option)(
        resume_hooks.parts.smart_trim.verbs.refuse_options_that_need_smart
    )
    check_function_type(questions.trim_with_part_option)(
        resume_hooks.parts.smart_trim.verbs.smart_trim
    )
