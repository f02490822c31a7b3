"""Fuzz target for documents: a page has only allowed elements, and nothing in it runs."""

from __future__ import annotations

import os

from resume_hooks.errors import ResumeHooksError
from resume_hooks.parts.share.export import HTML, MARKDOWN
from resume_hooks.parts.share.export.document import Document, DocumentOptions
from resume_hooks.parts.share.export.select_records import ALL_RECORDS, CONVERSATION, LIVE_ONLY
from resume_hooks.sessions.locate import SessionFile
from tests.builders import SESSION, ConfigHome
from tests.fuzz.draws import Draws
from tests.fuzz.material import draw_transcript, write_session_file
from tests.fuzz.targets.target import Target, TryCase
from tests.parts.share.export.vectors import ALLOWED_ELEMENTS, PageParts


def make_document_case(home: ConfigHome) -> TryCase:
    """Return a function that exports a random session in a random format."""
    folder = home.project()

    def try_case(draws: Draws) -> None:
        path = write_session_file(folder, SESSION, draw_transcript(draws, 16))
        form = draws.pick((HTML, HTML, MARKDOWN))
        what = draws.pick((CONVERSATION, ALL_RECORDS, LIVE_ONLY))
        choice = DocumentOptions(
            form,
            must_redact=draws.flip_coin(),
            includes_thinking=draws.flip_coin(),
            record_range=what,
            max_text_characters=draws.pick((0, 7, 1_000)),
        )
        session = SessionFile(SESSION, path, 0.0, os.path.getsize(path))
        try:
            document = Document([session], choice, home.where)
            text = b"".join(document.build_chunks()).decode()
        except ResumeHooksError:
            return
        assert "/" not in document.name
        if form != HTML:
            assert "\x1b" not in text
            return
        parts = PageParts()
        parts.feed(text)
        assert parts.elements <= ALLOWED_ELEMENTS
        assert parts.suspect == []
        assert text.rstrip().endswith("</html>")

    return try_case


TARGETS = (Target("documents", 400, make_document_case),)
