"""Run the real hook scripts on a bundled sample session, in a temporary configuration folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SESSION_ID = "0d5e5510-0000-4000-8000-00000000cafe"


def main() -> int:
    """Show the card, hand off, print the lineage and the child's opening, and search. Return 0."""
    with tempfile.TemporaryDirectory(prefix="resume-hooks-demo-") as scratch:
        work = Path(scratch, "checkout")
        work.mkdir()
        environ = demo_environment(Path(scratch))
        folder = Path(environ["CLAUDE_CONFIG_DIR"], "projects", project_folder_name(work))
        folder.mkdir(parents=True)
        write_sample_session(folder / f"{SESSION_ID}.jsonl", work)
        print_heading("An ordinary prompt passes, and the hook prints nothing")
        print(repr(send_prompt("please fix the failing test", work, environ)))
        print_heading("You type /full, or >resume in clients before 2.1.287")
        print(send_prompt(">resume", work, environ))
        print_heading(
            "You type /handoff fix the flaky upload test, or >handoff in clients before 2.1.287"
        )
        print(send_prompt(">handoff fix the flaky upload test", work, environ))
        child = newest_session(folder)
        print_heading("resume-hooks lineage, in a shell")
        print(run_engine(["lineage", child.stem], work, environ))
        print_heading("What the fresh session opens with")
        print(read_opening(child))
        print_heading("You, or the model, ask what was said before")
        print(
            run_engine(
                ["search", "why did retries fail", "--lineage", child.stem, "--limit", "2"],
                work,
                environ,
            )
        )
    return 0


def demo_environment(scratch: Path) -> dict[str, str]:
    """Return an environment whose home, configuration and plugin data are all in the scratch folder.

    In this environment nothing is copied to the clipboard.
    """
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(scratch),
        "CLAUDE_CONFIG_DIR": str(scratch / ".claude"),
        "CLAUDE_PLUGIN_ROOT": str(ROOT),
        "CLAUDE_PLUGIN_DATA": str(scratch / "plugin-data"),
        "RESUME_HOOKS_PYTHON": sys.executable,
        "RESUME_HOOKS_CLIPBOARD": "none",
    }


def write_sample_session(path: Path, work_folder: Path) -> None:
    """Write the sample session to ``path``, as if the client had been started in ``work_folder``."""
    sample = (ROOT / "demo" / "sample.jsonl").read_text(encoding="utf-8")
    path.write_text(sample.replace("/demo/checkout", str(work_folder)), encoding="utf-8")
    path.chmod(0o600)


def send_prompt(text: str, work_folder: Path, environ: dict[str, str]) -> str:
    """Send a prompt to the hook that hooks.json declares, as the client does.

    Return the text that the hook shows, or ``""`` if the prompt passes.
    """
    event = {
        "session_id": SESSION_ID,
        "cwd": str(work_folder),
        "hook_event_name": "UserPromptSubmit",
        "prompt": text,
    }
    hooks = json.loads((ROOT / "hooks" / "hooks.json").read_text(encoding="utf-8"))
    command = hooks["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
    out = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps(event).encode(),
        capture_output=True,
        cwd=work_folder,
        env=environ,
        check=True,
    ).stdout
    return str(json.loads(out)["reason"]) if out else ""


def run_engine(arguments: list[str], work_folder: Path, environ: dict[str, str]) -> str:
    """Run a verb with ``hooks/engine``, as the skills do, and return its output."""
    command = ["sh", str(ROOT / "hooks" / "engine"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=work_folder, env=environ, check=True
    ).stdout.rstrip()


def newest_session(folder: Path) -> Path:
    """Return the file of the session that was written last, other than the sample session."""
    return max(
        (path for path in folder.glob("*.jsonl") if path.stem != SESSION_ID),
        key=lambda path: path.stat().st_mtime,
    )


def read_opening(child: Path) -> str:
    """Return a session's first message, which the model reads before the user types a prompt.

    Raises:
        StopIteration: The session contains no message.
    """
    records = (json.loads(line) for line in child.read_text(encoding="utf-8").split("\n") if line)
    return str(next(record["message"]["content"] for record in records if "message" in record))


def project_folder_name(work_folder: Path) -> str:
    """Return the name of the project folder for a working folder, as the engine computes it."""
    sys.path.insert(0, str(ROOT / "src"))
    from resume_hooks.paths import project_key

    return project_key(str(work_folder))


def print_heading(text: str) -> None:
    """Print a heading as wide as the terminal allows."""
    width = min(shutil.get_terminal_size().columns, 100)
    print(f"\n== {text} {'=' * max(0, width - len(text) - 4)}")


if __name__ == "__main__":
    sys.exit(main())
