"""Tests of the token costs of texts, which are computed from the API's counts."""

from __future__ import annotations

import pytest

from resume_hooks.derive.trim.plan import SessionScan
from resume_hooks.transcripts.calibration import PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE, TokenScale
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN
from resume_hooks.transcripts.trimmable_pieces import (
    MEDIA_PIECE,
    RESULT_PIECE,
    THINKING_PIECE,
    Piece,
)
from tests.builders import ConfigHome, boundary, summary, usage
from tests.derive.trim.odd_transcripts import IMAGE
from tests.derive.trim.sessions import Chain, scan_file, write_project_session


def scan_conversation(home: ConfigHome, chain: Chain) -> SessionScan:
    """Write a conversation and scan it as a trim does."""
    return scan_file(write_project_session(home, chain))


def costs_of_kind(scanned: SessionScan, kind: str) -> list[int]:
    """Return the cost of each piece of a kind."""
    return [
        round(scanned.scale.tokens_of_piece(piece))
        for piece in scanned.piece_collector.pieces
        if piece.kind == kind
    ]


def test_growth_is_divided_among_the_added_texts(config_home: ConfigHome) -> None:
    """The growth between two counts is divided among the texts that were added between the counts.

    In this test, a tool output of 6,000 characters is nearly everything that was added, so it costs
    nearly all of the 3,000 tokens by which the context grew.
    """
    chain = (
        Chain()
        .ask("go")
        .answer("yes", tokens=10_000)
        .call_with_result("t1", "Bash", "ab " * 2_000)
        .answer("so", tokens=13_000)
    )
    assert costs_of_kind(scan_conversation(config_home, chain), RESULT_PIECE) == pytest.approx(
        [3_000], abs=20
    )


def test_the_ratio_is_computed_for_each_pair_of_counts(config_home: ConfigHome) -> None:
    """The ratio of tokens to characters is computed separately for each pair of consecutive counts."""
    chain = (
        Chain()
        .ask("go")
        .answer("yes", tokens=10_000)
        .call_with_result("t1", "Bash", "ab " * 2_000)
        .answer("so", tokens=12_000)
    )
    chain.call_with_result("t2", "Bash", "{}" * 3_000).answer("so", tokens=16_000)
    assert costs_of_kind(scan_conversation(config_home, chain), RESULT_PIECE) == pytest.approx(
        [2_000, 4_000], abs=30
    )


def test_images_are_subtracted_from_the_growth_first(config_home: ConfigHome) -> None:
    """The cost of an image is computed from its size. The text beside it costs the remaining tokens."""
    blocks = [IMAGE, {"type": "text", "text": "ab " * 2_000}]
    chain = (
        Chain()
        .ask("go")
        .answer("yes", tokens=10_000)
        .call_with_result("t1", "Read", blocks)
        .answer("so", tokens=12_960)
    )
    scanned = scan_conversation(config_home, chain)
    assert costs_of_kind(scanned, MEDIA_PIECE) == [960]
    assert costs_of_kind(scanned, RESULT_PIECE) == pytest.approx([2_000], abs=20)


def test_without_token_counts_a_token_has_four_characters(config_home: ConfigHome) -> None:
    """Without token counts, a token is assumed to have four characters."""
    scanned = scan_conversation(
        config_home, Chain().ask("go").call_with_result("t1", "Bash", "x" * 4_000).answer()
    )
    assert scanned.scale.characters_per_token == CHARACTERS_PER_TOKEN
    assert costs_of_kind(scanned, RESULT_PIECE) == [1_000]


@pytest.mark.parametrize("growth", [-5_000, 0, 5, 400_000])
def test_implausible_growth_is_ignored(config_home: ConfigHome, growth: int) -> None:
    """If the context shrank, or if it grew far more than its text did, the ratio stays plausible."""
    chain = (
        Chain().ask("go").answer("yes", tokens=10_000).call_with_result("t1", "Bash", "ab " * 2_000)
    )
    scanned = scan_conversation(config_home, chain.answer("so", tokens=10_000 + growth))
    assert (
        PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE[0]
        <= scanned.scale.characters_per_token
        <= PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE[1]
    )
    (tokens,) = costs_of_kind(scanned, RESULT_PIECE)
    assert (
        6_000 / PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE[1]
        <= tokens
        <= 6_000 / PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE[0]
    )


def test_thinking_that_the_api_dropped_costs_nothing(config_home: ConfigHome) -> None:
    """Thinking that the API no longer counts in the next turn costs nothing.

    The thinking is counted only during its own turn.
    """
    thought = {"type": "thinking", "thinking": "hmm " * 1_000, "signature": "s" * 400}
    chain = Chain().ask("go").answer("yes", tokens=10_000)
    chain.ask("on").answer(
        [thought, {"type": "text", "text": "a"}], tokens=usage(10_100)
    ).call_with_result("t1", "Bash", "x" * 400)
    chain.answer("b", tokens=11_300).ask("next").answer("c", tokens=10_210).ask("next").answer(
        "d", tokens=10_220
    )
    assert costs_of_kind(scan_conversation(config_home, chain), THINKING_PIECE) == pytest.approx(
        [0], abs=130
    )
    lasting = Chain()
    # During the turn, the thinking costs the number of tokens by which the context grew.
    lasting.rows = chain.rows[:-4]
    assert costs_of_kind(scan_conversation(config_home, lasting), THINKING_PIECE) == pytest.approx(
        [1_100], abs=50
    )


def test_counts_from_before_a_compaction_are_ignored(config_home: ConfigHome) -> None:
    """Token counts of answers that a compaction kept are ignored, because they are outdated."""
    chain = Chain().ask("go").answer("yes", tokens=90_000).answer("more", tokens=95_000)
    kept = {"anchorUuid": "s", "uuids": ["c1", "c2"], "allUuids": ["c1", "c2"]}
    rows = [
        *chain.rows,
        boundary(uuid="b", before="c2", ts=5, preserved=kept),
        summary("sum", uuid="s", parent="b", ts=6),
    ]
    after = (
        Chain()
        .ask("go")
        .answer("x", tokens=9_000)
        .call_with_result("t1", "Bash", "ab " * 2_000)
        .answer("y", tokens=11_000)
    )
    for row in after.rows:
        row["uuid"] = f"after-{row['uuid']}"
        row["parentUuid"] = f"after-{row['parentUuid']}" if row["parentUuid"] else "s"
        row["timestamp"] = row["timestamp"].replace("09:30", "09:40")
    scanned = scan_file(write_project_session(config_home, [*rows, *after.rows]))
    assert costs_of_kind(scanned, RESULT_PIECE) == pytest.approx([2_000], abs=20)


def test_a_record_without_a_count_has_the_average_ratio_of_the_session() -> None:
    """A record without a token count has as many tokens per character as the session on average."""
    scale = TokenScale(2.0, {1: 0.25}, {})
    assert scale.tokens_of_piece(Piece(9, (), RESULT_PIECE, 100)) == 50
    assert scale.tokens_of_piece(Piece(1, (), RESULT_PIECE, 100)) == 25
    assert scale.tokens_of_text(1, 100) == 25
