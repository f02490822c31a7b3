"""The chooser on a terminal, with sessions of Codex in it."""

from __future__ import annotations

import os
import time

from tests.cli.desk import CLIENT, HOUR, Desk
from tests.parts.codex import rollouts


def test_sessions_of_another_agent_are_in_the_list(desk: Desk) -> None:
    """With its name, which is searched too; what was said and every preview are theirs; its own program goes on."""
    talk = [rollouts.said("user", "Tune the parser", 1), rollouts.said("assistant", "The needle is in it.", 2)]
    rollout = rollouts.write(desk.home.root / ".codex", [rollouts.meta(cwd=str(desk.project)), *talk])
    os.utime(rollout, (time.time() - 9 * HOUR,) * 2)
    before = rollout.read_bytes()
    (desk.bin / "codex").write_text(CLIENT)
    (desk.bin / "codex").chmod(0o755)
    screen = desk.run("resume", columns=150, HOME=str(desk.home.root))
    screen.wait_for("^> Fix the parser")
    screen.wait_for("^  codex · Tune the parser")
    screen.type("needle")
    screen.wait_for(r"^> codex · Tune the parser +(strong|fair|weak)  The needle")
    screen.key("Escape")
    screen = desk.run("resume", "codex tune", columns=150, HOME=str(desk.home.root))
    screen.wait_for("^> codex · Tune the parser")
    screen.wait_for("1 turn, newest first")
    for told in ("1 session, oldest first", "not cached"):
        screen.key("Tab")
        screen.wait_for(told)
    screen.key("Enter")
    screen.wait_for(r"How do you want to continue\?")
    screen.type("1\r")
    screen.wait_for(f"STARTED resume {rollouts.THREAD} IN {desk.project.name}$")
    assert screen.ended() == 0
    assert screen.left_as_it_was()
    shell = f"cd {desk.project} && codex resume {rollouts.THREAD}"
    screen = desk.run("resume", rollouts.THREAD, "--way", "go on", "--print", columns=200, HOME=str(desk.home.root))
    assert screen.ended() == 0
    assert shell.encode() in screen.raw
    screen = desk.run("continue", rollouts.THREAD, "--fork", columns=200, HOME=str(desk.home.root))
    screen.wait_for(rf"STARTED resume (?!{rollouts.THREAD})\S+ IN {desk.project.name}$")
    (desk.bin / "codex").unlink()
    screen = desk.run("handoff", rollouts.THREAD, "--start", columns=200, HOME=str(desk.home.root))
    screen.wait_for("codex is not on PATH, so nothing was made")
    assert rollout.read_bytes() == before
