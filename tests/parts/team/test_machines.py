"""Tests of random actions on three machines, including kills during a push.

After each action, the server must have each machine's file in redacted form.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from resume_hooks.parts.team import chunks, cursor, pushing, sharing
from resume_hooks.parts.team.connect import connect_to_team
from tests.builders import SESSION, session_bytes, user
from tests.parts.team.conftest import Machine
from tests.parts.team.server import Server
from tests.parts.team.test_push import (
    compute_expected_content,
    push_from_machine,
    read_contents_on_server,
    write_on_machine,
)

MACHINE_NAMES = ("laptop", "desk", "server")
MACHINE_STRATEGY = st.sampled_from(("laptop", "laptop", "laptop", "desk", "server"))
SECRET = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"


class _KilledError(BaseException):
    """Raised where a kill would end the process."""


class Machines(RuleBasedStateMachine):
    """Three machines of one person, each with its own file of the same session."""

    server: Server
    database: str
    root: Path
    numbers = itertools.count()

    @initialize()
    def reset_machines(self) -> None:
        """Empty the database, and write a new file of the session on each machine."""
        self.folder = Path(tempfile.mkdtemp(dir=self.root))
        with self.server.connect_as_superuser(self.database) as root:
            root.execute("truncate team.machine, team.forgotten, team.audit cascade")
        self.machines = {each: Machine(self.folder / each, "alice") for each in MACHINE_NAMES}
        self.paths = {
            each: write_on_machine(machine, [self._next_prompt_record()])
            for each, machine in self.machines.items()
        }
        self.pushed: dict[str, bytes] = {}
        self.forgotten = False

    def teardown(self) -> None:
        """Remove the machines' folders."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _next_prompt_record(self) -> dict[str, object]:
        number = next(self.numbers)
        return user(
            f"turn {number} {SECRET if number % 3 == 0 else ''} " + "x" * 150,
            uuid=f"u{number}",
            ts=number % 999,
        )

    @rule(machine_name=MACHINE_STRATEGY, prompt_count=st.integers(1, 6))
    def append_prompts(self, machine_name: str, prompt_count: int) -> None:
        """Append prompts to the session on a machine, as the client does."""
        with self.paths[machine_name].open("ab") as stream:
            stream.write(session_bytes([self._next_prompt_record() for _ in range(prompt_count)]))

    @rule(machine_name=MACHINE_STRATEGY, is_new_file=st.booleans(), prompt_count=st.integers(1, 9))
    def rewrite_second_half(self, machine_name: str, is_new_file: bool, prompt_count: int) -> None:
        """Replace the second half of the session's lines on a machine.

        The file is changed in place or replaced by a new file.
        """
        path = self.paths[machine_name]
        lines = path.read_bytes().split(b"\n")[:-1]
        kept = lines[: len(lines) // 2]
        content = b"".join(line + b"\n" for line in kept) + session_bytes(
            [self._next_prompt_record() for _ in range(prompt_count)]
        )
        if is_new_file:
            path.unlink()
        path.write_bytes(content)

    @rule(machine_name=MACHINE_STRATEGY, rescan=st.booleans())
    def push(self, machine_name: str, rescan: bool) -> None:
        """Push the session from a machine without an interruption."""
        done = push_from_machine(
            self.machines[machine_name], self.paths[machine_name], rescan=rescan
        )
        assert (done.result == "forgotten") is self.forgotten
        if not self.forgotten:
            self.pushed[machine_name] = compute_expected_content(self.paths[machine_name])

    @rule(
        machine_name=MACHINE_STRATEGY,
        sent_piece_count=st.integers(0, 3),
        is_before_sending=st.booleans(),
    )
    def kill_push(self, machine_name: str, sent_piece_count: int, is_before_sending: bool) -> None:
        """Push, but kill the process before or after it sends a chunk, or before it stores its upload progress."""
        left = sent_piece_count
        real = pushing._SessionPush._append_chunk

        def append_or_be_killed(self: pushing._SessionPush, *arguments: object) -> object:
            nonlocal left
            if not left and is_before_sending:
                raise _KilledError
            answer = real(self, *arguments)  # type: ignore[arg-type]
            if not left:
                raise _KilledError
            left -= 1
            return answer

        def be_killed(*_: object) -> None:
            raise _KilledError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pushing._SessionPush, "_append_chunk", append_or_be_killed)
            patch.setattr(pushing, "write_upload_progress", be_killed)
            try:
                push_from_machine(self.machines[machine_name], self.paths[machine_name])
            except _KilledError:
                self.pushed.pop(machine_name, None)

    @rule(machine_name=MACHINE_STRATEGY)
    def reset_cursor(self, machine_name: str) -> None:
        """Reset the upload progress, as if the state folder were lost."""
        cursor.write_upload_progress(
            SESSION, cursor.UploadProgress(), self.machines[machine_name].where
        )

    @precondition(lambda self: not self.forgotten and len(self.pushed) > 1)
    @rule(machine_name=MACHINE_STRATEGY)
    def forget_session(self, machine_name: str) -> None:
        """Remove the session from the team for every machine."""
        with connect_to_team("alice") as db:
            sharing.forget_session_and_count_copies(SESSION, db, self.machines[machine_name].where)
        self.forgotten, self.pushed = True, {}

    @invariant()
    def check_server_content(self) -> None:
        """Check that the server has exactly the data that each machine pushed.

        The server must have no secrets and no data of a forgotten session.
        """
        with self.server.connect_as_superuser(self.database) as root:
            there = read_contents_on_server(root)
        for machine_name, content in self.pushed.items():
            assert there[machine_name] == content
        assert not any(SECRET.encode() in content for content in there.values())
        assert not (self.forgotten and there)


@pytest.mark.parametrize("example_count", [25, pytest.param(150, marks=pytest.mark.wide)])
def test_any_order_of_actions_keeps_every_file(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example_count: int
) -> None:
    """The server keeps each machine's file, in whatever order the three machines act.

    The machines append, rewrite, are killed, lose the upload progress, push again, and forget the session.
    """
    monkeypatch.setattr(chunks, "MAX_CHUNK_BYTES", 700)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services.conf"))
    Machines.server, Machines.database, Machines.root = server, server.create_database(), tmp_path
    server.write_service_file(Machines.database, tmp_path / "services.conf")
    chosen = settings(
        max_examples=example_count, stateful_step_count=20, deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    run_state_machine_as_test(Machines, settings=chosen)
