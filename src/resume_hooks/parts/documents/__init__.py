"""Documents that a handoff writes into a project on request.

Sessions do not read these documents. They are for people and for other programs.
"""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Option, Part, Setting

PART = Part(
    options=(
        Option(
            "handoff",
            ("-o", "--out", "--output", "out"),
            "Also write a handoff document: a .md file, or a folder for one.",
            "requested_files:require_path_for_out_option",
            is_flag=False,
        ),
        Option(
            "handoff",
            ("--force",),
            "With --out: overwrite the file.",
            "requested_files:require_out_option_with_force",
        ),
    ),
    settings=(
        Setting(
            "handoff_dir",
            "",
            "The folder in which each handoff writes a document, for example _handoffs in the project; empty = off.",
            parser_factory="path",
            parser_arguments=("", "a folder, such as _handoffs"),
            insert_before="vault",
        ),
    ),
    answers=(
        Answer(questions.make_handoff_file_writer, "requested_files:make_document_writer"),
        Answer(
            questions.document_folders_and_extensions,
            "document_folders:find_document_folder_and_suffix",
        ),
        Answer(
            questions.build_note_on_written_files, "document_folders:build_note_on_written_files"
        ),
    ),
)
