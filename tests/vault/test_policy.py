"""What goes from the vault: by size and by age, the oldest first; no ancestor of what is there; an employer's word."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from resume_hooks import client_settings, settings, store
from resume_hooks.errors import UsageError, VaultOff
from resume_hooks.vault import first_use, policy
from resume_hooks.vault.keeping import keep
from resume_hooks.vault.packing import pack
from resume_hooks.vaulted.notes import find, held
from tests.builders import ConfigHome, conversation, session_id, write_session

DAY = 24 * 60 * 60


def kept(home: ConfigHome, number: int, days: int, *, parent: int = 0, present: bool = False) -> str:
    """A packed session of so many days ago, gone from the client unless it is to be ``present``; its id."""
    own = session_id(number)
    rows = [*conversation(3, session_id=own)]
    if parent:
        file = str(home.project() / f"{session_id(parent)}.jsonl")
        said = {"parent_session_file": file, "parent_session_id": session_id(parent), "continuation_type": "handoff"}
        rows.insert(0, {"continue_metadata": said})
    path = write_session(home.project(), own, rows, mtime=time.time() - days * DAY)
    pack(keep(store.session_file(path), home.environ), home.environ)
    if not present:
        os.unlink(path)
    return own


def left(home: ConfigHome) -> set[str]:
    """The ids of what is kept."""
    return {each.session_id for each in held(home.environ)}


def test_nothing_goes_by_itself(config_home: ConfigHome) -> None:
    """The defaults keep for ever, up to 20 GB."""
    one = kept(config_home, 1, 4000)
    assert policy.apply(config_home.environ) == []
    assert left(config_home) == {one}
    assert settings.size("vault_max", config_home.environ) == 20 * 1024**3


def test_the_oldest_go_first(config_home: ConfigHome) -> None:
    """As many as the limit asks for, each told; 0 is no limit."""
    one, two, three = (kept(config_home, number, 100 - number) for number in (1, 2, 3))
    takes = [policy.taken(each) for each in held(config_home.environ)]
    settings.store("vault_max", "0", config_home.environ)
    assert policy.due(config_home.environ) == []
    settings.store("vault_max", str(sum(takes) - 1), config_home.environ)
    assert [each.session_id for each in policy.due(config_home.environ)] == [one]
    assert [each.session_id for each in policy.due(config_home.environ, keeping=[one])] == [two]
    (gone,) = policy.apply(config_home.environ)
    assert "vault_max" in gone.sentence
    assert left(config_home) == {two, three}


def test_never_an_ancestor_of_what_is_there(config_home: ConfigHome) -> None:
    """However many generations above it, whatever the limit; once nothing is there that came from it, it goes."""
    one = kept(config_home, 1, 100)
    two = kept(config_home, 2, 90, parent=1)
    three = kept(config_home, 3, 80, parent=2, present=True)
    other = kept(config_home, 4, 10)
    settings.store("vault_max", "1", config_home.environ)
    settings.store("vault_days", "5", config_home.environ)
    assert {each.session_id for each in policy.due(config_home.environ)} == {three, other}
    (config_home.project() / f"{three}.jsonl").unlink()
    assert {each.session_id for each in policy.apply(config_home.environ)} == {one, two, three, other}
    assert left(config_home) == set()


def test_by_age(config_home: ConfigHome) -> None:
    """Days since the last write, as far as they are told."""
    old, young = kept(config_home, 1, 100), kept(config_home, 2, 10)
    settings.store("vault_days", "30", config_home.environ)
    (gone,) = policy.apply(config_home.environ)
    assert (gone.session_id, "30 days of vault_days" in gone.why) == (old, True)
    assert left(config_home) == {young}


def test_a_link_takes_no_room(config_home: ConfigHome) -> None:
    """As long as the client has the file; then it is ours alone."""
    path = write_session(config_home.project(), session_id(1), conversation(2), mtime=time.time() - DAY)
    found = keep(store.session_file(path), config_home.environ)
    assert policy.taken(found) == 0
    os.unlink(path)
    assert policy.taken(found) == found.stored > 0


def test_an_employers_retention(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing more is kept; what was goes when it falls due, ancestors too."""
    old = kept(config_home, 1, 25)
    young = kept(config_home, 2, 5, parent=1, present=True)
    managed = tmp_path / "managed-settings.json"
    monkeypatch.setattr(client_settings, "settings_files", lambda *_: [str(managed)])
    for value in ('"x"', "null", "0", "true"):
        managed.write_text(f'{{"cleanupPeriodDays":{value}}}')
        assert policy.allowed(config_home.environ) == (True, "")
    managed.write_text('{"cleanupPeriodDays":20}')
    may, why = policy.allowed(config_home.environ)
    assert (may, "20 days" in why, str(managed) in why) == (False, True, True)
    (gone,) = policy.apply(config_home.environ)
    assert (gone.session_id, str(managed) in gone.why) == (old, True)
    assert left(config_home) == {young}


def test_said_once(config_home: ConfigHome) -> None:
    """The first time, with the way to switch it off; then never again."""
    said = first_use.line(config_home.environ)
    assert "beyond the client's 30 days" in said
    assert "config vault off" in said
    assert first_use.line(config_home.environ) == ""


@pytest.mark.parametrize(("text", "size"), [("500M", 500 * 1024**2), ("20 g", 0), ("2GB", 2 * 1024**3), ("7", 7)])
def test_sizes_in_words(config_home: ConfigHome, text: str, size: int) -> None:
    """As people write them; what can't be read is refused."""
    if not size:
        with pytest.raises(UsageError):
            settings.store("vault_max", text, config_home.environ)
        return
    settings.store("vault_max", text, config_home.environ)
    assert settings.size("vault_max", config_home.environ) == size


def test_what_can_not_be_removed_stays(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next time tries it again; nothing else is kept from going."""
    one = kept(config_home, 1, 100)
    settings.store("vault_days", "5", config_home.environ)

    def refused(*_: object) -> None:
        raise VaultOff("no")

    monkeypatch.setattr(policy, "forget", refused)
    assert policy.apply(config_home.environ) == []
    assert find(one, config_home.environ) is not None
