"""What a session is called that nobody gave a title."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest.goal_title import goal_title

TAG = "<ide_opened_file>The user opened the file /home/me/mise.toml.</ide_opened_file>\n"


@pytest.mark.parametrize(
    ("prompts", "title"),
    [
        (["Can you please check if the tests run twice?"], "check if the tests run twice"),
        (["Hi Claude! I'd like you to word the preview a bit better. And more."], "word the preview a bit better"),
        (["hello", "so let's write a file about geese"], "write a file about geese"),
        (["/init", "fix lint errors"], "fix lint errors"),
        (["/review https://github.com/a/b/pull/2"], "/review github.com/a/b/pull/2"),
        ([f"{TAG}create a CODEOWNERS file"], "create a CODEOWNERS file"),
        (["Implement the following plan:\n\n# Plan: Simplify the graph\n\n## Goal\nMore"], "Simplify the graph"),
        (["Please fix these:\n- the lexer\n- the parser"], "fix these"),
        (["wingman.lock should be ignored?"], "wingman.lock should be ignored?"),
        (["PR #221, #222 확인하고 머지해주세요"], "PR #221, #222 확인하고 머지해주세요"),
        (["please", "ok", "/clear", "", "```\ncode\n```"], ""),
    ],
)  # fmt: skip
def test_what_is_asked_stands_first(prompts: list[str], title: str) -> None:
    """Without greeting, politeness, tags of the client; a plan by its heading; past prompts that say nothing."""
    assert goal_title(prompts) == title


@pytest.mark.parametrize("hostile", ["please " * 50_000, "# " * 50_000 + ":", "hi,\n" * 20_000, "<ide_x>" * 20_000])
def test_no_text_takes_long(hostile: str) -> None:
    """Only the beginning of a prompt is looked at."""
    assert len(goal_title([hostile])) <= 320
