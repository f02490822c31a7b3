"""``python -m tests.state.make COMMIT...``: freezes what earlier engines leave in a state folder, for ``test_earlier``.

Each commit is checked out into a temporary clone, and its own engine hands off, trims, searches, marks, deletes and is
configured in a home of made-up sessions. What a verb of today needs but that engine lacks is left out.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from tests.builders import CWD, SESSION, assistant, conversation, session_id, tool_result, tool_use, user, write_session
from tests.needs import REPO

HERE = Path(__file__).resolve().parent
HOME = "@HOME@"
"""What stands in the frozen files for the home that they were made in."""

CLEARED, DELETED, BULKY = session_id(2), session_id(3), session_id(4)
LINES = "a line of output\n" * 80


def sessions(config: Path) -> Path:
    """A home's sessions: one to hand off, one to delete, one to trim; the project folder."""
    folder = config / "projects" / "-home-user-proj"
    write_session(folder, SESSION, conversation(4), mtime=1_000_000_000)
    write_session(folder, DELETED, conversation(2), mtime=1_000_000_000)
    rows = [user("read it", uuid="u")]
    for n in range(6):
        rows += [
            tool_use(f"c{n}", uuid=f"t{n}", parent=rows[-1]["uuid"], tool_input={"file_path": f"/f{n}"}),
            tool_result(f"c{n}", f"{n}: {LINES}", uuid=f"r{n}", parent=f"t{n}"),
            assistant(f"answer {n}", uuid=f"a{n}", parent=f"r{n}", tokens=5_000 + 3_000 * n),
            user(f"and {n}", uuid=f"p{n}", parent=f"a{n}"),
        ]
    write_session(folder, BULKY, rows, mtime=1_000_000_000)
    return folder


def frozen(commit: str) -> dict[str, object]:
    """What the engine of a commit leaves: each file of the state folder, text as it is, else zlib and base64."""
    with tempfile.TemporaryDirectory() as folder:
        clone, home = Path(folder, "clone"), Path(folder, "home")
        subprocess.run(["git", "clone", "-q", str(REPO), str(clone)], check=True)
        subprocess.run(["git", "checkout", "-q", commit], cwd=clone, check=True)
        config = home / ".claude"
        project = sessions(config)
        _work(clone, home, project)
        state = config / "resume-hooks"
        files = {}
        for path in sorted(path for path in state.rglob("*") if path.is_file()):
            raw = path.read_bytes()
            try:
                kept = {"text": raw.decode().replace(str(home), HOME)}
            except UnicodeDecodeError:
                kept = {"zlib": base64.b64encode(zlib.compress(raw, 9)).decode()}
            files[str(path.relative_to(state))] = kept
        changed = [p for p in project.glob("*.jsonl") if p.stem not in {SESSION, DELETED}]
        transcripts = {path.name: path.read_text().replace(str(home), HOME) for path in sorted(changed)}
        return {"commit": commit, "files": files, "transcripts": transcripts}


def _work(clone: Path, home: Path, project: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "PYTHONPATH": str(clone / "src"), "RESUME_HOOKS_CLIPBOARD": "none", "CLAUDE_PID": "1",
    }  # fmt: skip

    def run(*words: str, stdin: str = "") -> None:
        subprocess.run([sys.executable, *words], input=stdin, env=environ, text=True, capture_output=True, check=False)

    def verb(*words: str) -> None:
        run("-m", "resume_hooks", *words)

    def hook(name: str, number: str, **event: str) -> None:
        sent = {"session_id": number, "transcript_path": str(project / f"{number}.jsonl"), "cwd": CWD, **event}
        run(str(clone / "hooks" / f"{name}.py"), stdin=json.dumps(sent))

    hook("prompt", SESSION, prompt=">handoff go on with it")
    hook("session", SESSION, hook_event_name="SessionEnd", reason="clear")
    hook("session", CLEARED, hook_event_name="SessionStart", source="clear")
    hook("session", SESSION, hook_event_name="SessionEnd", reason="clear")
    hook("prompt", SESSION, prompt=">handoff another step")
    hook("prompt", BULKY, prompt=">trim")
    hook("prompt", SESSION, prompt=">checkpoint before it breaks")
    verb("config", "threshold", "700")
    verb("config", "clipboard", "osc52")
    verb("trim", BULKY, "--in-place")
    verb("search", "prompt", "--all")
    verb("delete", DELETED, "--yes")


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        (HERE / f"{wanted}.json").write_text(json.dumps(frozen(wanted), indent=1) + "\n", encoding="utf-8")
