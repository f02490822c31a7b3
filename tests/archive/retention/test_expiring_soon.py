"""Tests that ``doctor`` and ``sessions`` report the sessions that expire within seven days."""

from __future__ import annotations

import json
from typing import Any

import pytest

from resume_hooks.archive.retention.expiring import forecast_expiry
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.maintenance.doctor import _check_expiry
from resume_hooks.search.listing import SessionLister, listing_page
from tests.archive.retention.sessions_of_age import session_of_age, write_tool_output
from tests.builders import CWD, ConfigHome


def test_doctor_counts_expiring_sessions_of_all_projects(config_home: ConfigHome) -> None:
    """Doctor counts expiring sessions, their projects, and younger sessions with expiring files."""
    first = session_of_age(config_home, 1, 29)
    session_of_age(config_home, 2, 25, cwd="/other")
    write_tool_output(session_of_age(config_home, 3, 1), 26)
    session_of_age(config_home, 4, 1)
    archive_session(first, config_home.where)
    found = forecast_expiry(CWD, config_home.where)
    assert (
        found.session_count,
        found.project_count,
        found.younger_session_count,
        found.unarchived_count,
    ) == (2, 2, 1, 2)
    assert found.earliest_deletion_time == first.mtime + 30 * 86_400
    finding = _check_expiry(CWD)
    assert (finding.level, finding.code) == ("note", "soon")
    assert (
        "2 sessions in 2 projects, and files of 1 younger sessions, expire within seven days, from 20"
        in finding.detail
    )
    assert "the client's default" in finding.detail


@pytest.mark.parametrize(
    ("settings", "days", "level", "expected_text"),
    [
        ({"cleanupPeriodDays": 0}, 25, "ok", "deletes no session"),
        (
            {"cleanupPeriodDays": 90},
            25,
            "ok",
            "90 days after their last write (cleanupPeriodDays in ",
        ),
        ({}, 1, "ok", "none within seven days"),
    ],
)
def test_doctor_reports_ok_without_expiring_sessions(
    config_home: ConfigHome, settings: Any, days: float, level: str, expected_text: str
) -> None:
    """Doctor reports "ok" if no session expires within seven days, and states the retention period."""
    (config_home.config / "settings.json").write_text(json.dumps(settings))
    session_of_age(config_home, 1, days)
    finding = _check_expiry(CWD)
    assert finding.level == level
    assert expected_text in finding.detail


def test_doctor_reports_whether_expiring_sessions_are_archived(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Doctor reports the code "kept" if all expiring sessions are archived.

    It reports "unkept" if the vault is off.
    """
    archive_session(session_of_age(config_home, 1, 25), config_home.where)
    assert _check_expiry(CWD).code == "kept"
    monkeypatch.setenv("RESUME_HOOKS_VAULT", "off")
    assert _check_expiry(CWD).code == "unkept"


def test_expiring_sessions_are_listed_with_expiry_and_archived_state(
    config_home: ConfigHome,
) -> None:
    """``sessions --expiring`` lists only expiring sessions, the earliest expiry first.

    Each row says when the session expires and whether it is archived.
    """
    late, soon = session_of_age(config_home, 1, 25), session_of_age(config_home, 2, 28)
    session_of_age(config_home, 3, 1)
    archive_session(soon, config_home.where)
    found = listing_page(
        SessionLister(CWD, config_home.where), None, max_rows=0, only_expiring=True
    )
    assert [(row.session_id, row.is_archived) for row in found.rows] == [
        (soon.session_id, True),
        (late.session_id, False),
    ]
    assert [row.days_to_expiry for row in found.rows] == [1, 4]
    assert all(row.expiry_time and row.expiry_time.endswith("Z") for row in found.rows)
    assert (
        listing_page(SessionLister(CWD, config_home.where), None, max_rows=0).rows[0].days_to_expiry
        == 28
    )
