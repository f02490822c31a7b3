"""Crashes: whatever stops a trim, the child is there whole or not at all, and its parent is as it was."""

from __future__ import annotations

from tests.crashes import crashed

PROGRAM = "tests.derive.trim.crashing"


def test_killed_at_every_step() -> None:
    """No child, or the whole one with its companions; what a killed try left is harmless, and swept by the next."""
    tries = crashed(PROGRAM, "kill")
    whole = tries[-2]
    assert not whole["killed"]
    assert whole["companions"] == ["one", "one", "two", "two"]
    killed = [found for found in tries if found["killed"]]
    assert len(killed) > 10
    for found in killed:
        assert found["parent"] == whole["parent"]
        assert found["child"] in {False, whole["child"]}
        if found["child"]:
            assert found["companions"] == whole["companions"]
        assert found["linked"]  # large outputs under the id of a child that was not born take no space of their own
    assert any(found["child"] for found in killed), "one step comes after the child's birth"
    for found in tries[1::2]:
        assert (found["child"], found["companions"], found["temporary"]) == (whole["child"], whole["companions"], [])


def test_a_slim_copy_killed_on_the_way() -> None:
    """The session is as it was; a copy is there only whole, and only where the vault holds what it leads to."""
    tries = crashed(PROGRAM, "slim", "11")
    *killed, whole = tries
    assert len(killed) > 5
    assert all(found["kept"] and found["whole"] and not found["again"] for found in tries)
    assert len(whole["children"]) == 1
    assert all(found["children"] in ([], whole["children"]) for found in killed)


def test_a_full_disk() -> None:
    """However early it is full: a sentence, and nothing is left, companions included."""
    for found in crashed(PROGRAM, "full"):
        assert found["refused"]
        assert (found["child"], found["folders"], found["temporary"]) == (False, False, [])


def test_a_read_only_folder() -> None:
    """Nothing can be made in the project, and nothing stays in the file history either."""
    (found,) = crashed(PROGRAM, "readonly")
    assert found["refused"]
    assert (found["child"], found["folders"], found["temporary"]) == (False, False, [])
