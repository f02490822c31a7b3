"""Tests of finding secrets in a session, including secrets that only their command reveals as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.reading.session_secrets import learn_secrets_in_file
from resume_hooks.redaction.known_secrets import Redactor
from tests.builders import assistant, call, result, session_bytes, user

PRINTING_COMMANDS = [
    "printenv DB_PASSWORD", "echo $DB_PASSWORD", "kubectl get secret db -o jsonpath={.data.password} | base64 -d",
    "terraform output -raw db_password", "gcloud secrets versions access latest --secret=db-password",
    "aws ssm get-parameter --with-decryption --name /db/password", "cat /run/secrets/db_password", "pass show work/db",
    "docker exec db printenv POSTGRES_PASSWORD", "heroku config:get SECRET_KEY_BASE", "pwgen -s 16 1",
    "vault kv get -field=password secret/db", "grep -i password .env | cut -d= -f2",
    "python -c \"import os; print(os.environ['DB_PASSWORD'])\"",
]  # fmt: skip


def redactor_of_output(folder: Path, command: str, output: str | list[dict[str, str]]) -> Redactor:
    """Return a redactor that has read a transcript in which a command printed an output."""
    rows = [
        assistant([call("toolu_1", "Bash", command=command)], uuid="a", parent=None),
        user([result("toolu_1", output)], uuid="b", parent="a"),
    ]
    path = folder / "session.jsonl"
    path.write_bytes(session_bytes(rows))
    redactor = Redactor()
    learn_secrets_in_file(redactor, str(path))
    return redactor


@pytest.mark.parametrize("command", PRINTING_COMMANDS)
@pytest.mark.parametrize("printed", ["{}", "{}\n", '"{}"'])
def test_a_secret_is_recognized_by_the_command_that_printed_it(
    tmp_path: Path, command: str, printed: str
) -> None:
    """If a command whose purpose is to show secrets printed a value, this value is removed from all texts."""
    value = "vkWqzTe482Q"
    redactor = redactor_of_output(tmp_path, command, printed.format(value))
    assert value not in redactor.redact(f"it is {value}.")


@pytest.mark.parametrize(
    "output", ["done", "12 passed", "src/tokens.py", "build_tokenizer", "https://example.com/key"]
)
def test_an_output_without_a_secret_is_kept(tmp_path: Path, output: str) -> None:
    """A name, path, word or address that a command for secrets printed is not treated as a secret."""
    redactor = redactor_of_output(
        tmp_path, "cat tokens.txt | cut -c1-80", [{"type": "text", "text": output}]
    )
    assert not redactor.has_known_values
