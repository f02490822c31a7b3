"""Tests that a secret which was found once is removed everywhere, while similar words stay."""

from __future__ import annotations

import json

import pytest

from resume_hooks.redaction.known_secrets import Redactor

KNOWN_PASSWORD = "xho9ypjaxtbw"
TEXT_WITH_PASSWORD = f"deploy with:\npassword: >-\n  {KNOWN_PASSWORD}\nand tell me"
PASSWORD_PLACEHOLDER = "[secret removed: password]"


@pytest.mark.parametrize(
    "text",
    [
        f"deploy with: password: >- {KNOWN_PASSWORD} and tell me",
        f"/srv/{KNOWN_PASSWORD}.txt",
        f"a{KNOWN_PASSWORD}b",
        f'{{"a": "{{\\"b\\": \\"{KNOWN_PASSWORD}\\"}}"}}',
        "echo xho9yp\\\njaxtbw",
        "'xho9yp' 'jaxtbw'",
        "xho9yp\\\\njaxtbw",
        "\\u0078ho9ypjaxtbw",
        "\x1b[31mxho9\x1b[0mypjaxtbw",
        "xho9\u200bypjaxtbw",
        "\u00ad".join("xho9ypjaxtbw"),
        "deploy with xho9yp…",
        "… jaxtbw and more …tbw and",
        "tail of a cut title xho9",
        "the beginning of an output xho9ypja\n",
        ' ypjaxtbw" is the other half',
        "eGhvOXlwamF4dGJ3",
        "user:xho9ypjaxtbw in base64 is dXNlcjp4aG85eXBqYXh0Ync=",
        f"{'YWFh' * 15}b2YgeGhvOXlw\namF4dGJ3LCBhbmQgc28g",
    ],
)
def test_a_known_value_is_removed_in_every_form(text: str) -> None:
    """A known secret is removed in every form: in a path, escaped, folded, quoted, colored or cut."""
    clean = Redactor([TEXT_WITH_PASSWORD]).redact(text)
    assert PASSWORD_PLACEHOLDER in clean
    assert not any(
        KNOWN_PASSWORD[at : at + 3] in clean
        for at in range(len(KNOWN_PASSWORD) - 2)
        if "…" not in text or at in {0, 9}
    )


def test_a_secret_is_also_removed_without_its_invisible_characters() -> None:
    """A secret that was found with invisible characters in it is also removed where it has none."""
    redactor = Redactor(["password: xho9\u200byp\u2060jaxtbw"])
    assert (
        redactor.redact(f"the value {KNOWN_PASSWORD} is old")
        == f"the value {PASSWORD_PLACEHOLDER} is old"
    )
    line = json.dumps({"message": {"content": "it is " + "\u200b".join(KNOWN_PASSWORD)}}).encode()
    for simplify_name_pattern in (line, line.replace(b"200b", b"200B")):
        assert json.loads(redactor.redact_line(simplify_name_pattern)[0]) == {
            "message": {"content": f"it is {PASSWORD_PLACEHOLDER}"}
        }


def test_a_percent_encoded_value_is_removed() -> None:
    """A known secret is removed from a URL, where it is percent-encoded."""
    redactor = Redactor(['password = "Xk9&q+zz/Wd"'])
    assert (
        redactor.redact("see https://host/?q=Xk9%26q%2Bzz%2FWd now")
        == f"see https://host/?q={PASSWORD_PLACEHOLDER} now"
    )


def test_each_line_of_a_private_key_is_removed() -> None:
    """Each single line of a known private key is removed, for example in a patch."""
    body = [
        "MIIEpAIBAAKCAQEAx7dJq0m1Zs8yV2bTnRkLw3cHfGp5uE9o",
        "Jd8sKqPzXv6bYtR4nWm2cLf7hGa9eTk3uIo5yQx1ZrBwVsNj",
    ]
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(body) + "\n-----END RSA PRIVATE KEY-----"
    assert body[1] not in Redactor([key]).redact(f"+ {body[1]}")


def test_a_common_word_is_removed_only_next_to_an_indicator() -> None:
    """A known password that is a common word is removed only near a word such as "password"."""
    redactor = Redactor(["DB_PASSWORD=sunshine"])
    assert redactor.redact("A day of sunshine.") == "A day of sunshine."
    assert redactor.redact("sunshines are no passwords") == "sunshines are no passwords"
    assert (
        redactor.redact("the password, they say, is still sunshine.")
        == f"the password, they say, is still {PASSWORD_PLACEHOLDER}."
    )


def test_a_common_value_is_removed_only_where_a_rule_matches() -> None:
    """A known password that is very common, such as "postgres", is removed only where a rule finds it."""
    redactor = Redactor(["POSTGRES_PASSWORD=postgres", "https://a:b2x@h/", "password: changeme"])
    text = "postgres password and b2x"
    assert redactor.redact(text) is text


def test_a_session_id_is_never_removed() -> None:
    """A session id is never removed, even if a rule takes it for a token."""
    session = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
    redactor = Redactor()
    redactor.exclude_names([session])
    redactor.learn_text(f"API_TOKEN={session}")
    assert redactor.redact(f"1. a · {session}") == f"1. a · {session}"
    assert session not in Redactor([f"API_TOKEN={session}"]).redact(f"1. a · {session}")


def test_without_known_secrets_only_the_rules_apply() -> None:
    """A text is unchanged if no secret is known and no rule applies."""
    text = "nothing to see"
    assert Redactor(["no secret"]).redact(text) is text


def test_a_line_of_a_transcript_stays_json() -> None:
    """Known secrets are removed from all strings and keys of a record, except ids.

    The line remains valid JSON.
    """
    record = {
        "type": "user",
        "uuid": KNOWN_PASSWORD,
        "cwd": f"/srv/{KNOWN_PASSWORD}",
        "message": {"content": f"é {KNOWN_PASSWORD[:4]}\n{KNOWN_PASSWORD[4:]}"},
        "toolUseResult": {
            "structuredPatch": [{"lines": [f"+{KNOWN_PASSWORD}"]}],
            f"/a/{KNOWN_PASSWORD}": 1,
        },
        "snapshot": {"trackedFileBackups": {f"/srv/{KNOWN_PASSWORD}": {"backupFileName": "x"}}},
    }
    redactor = Redactor()
    redactor.learn_line(json.dumps({"message": {"content": TEXT_WITH_PASSWORD}}).encode())
    clean, found = redactor.redact_line(json.dumps(record).encode())
    assert json.loads(clean) == {
        "type": "user",
        "uuid": KNOWN_PASSWORD,
        "cwd": f"/srv/{PASSWORD_PLACEHOLDER}",
        "message": {"content": f"é {PASSWORD_PLACEHOLDER}"},
        "toolUseResult": {
            "structuredPatch": [{"lines": [f"+{PASSWORD_PLACEHOLDER}"]}],
            f"/a/{PASSWORD_PLACEHOLDER}": 1,
        },
        "snapshot": {
            "trackedFileBackups": {f"/srv/{PASSWORD_PLACEHOLDER}": {"backupFileName": "x"}}
        },
    }
    assert len(found) == 5


def test_a_partial_line_is_redacted_as_text() -> None:
    """A known secret is removed from a partial line."""
    redactor = Redactor([TEXT_WITH_PASSWORD])
    assert (
        KNOWN_PASSWORD.encode() not in redactor.redact_line(b'{"a": "' + KNOWN_PASSWORD.encode())[0]
    )


def test_offsets_count_characters() -> None:
    """The positions of secrets are counted in characters."""
    text = f"é {KNOWN_PASSWORD} ü"
    secrets = Redactor([TEXT_WITH_PASSWORD]).redact_and_list_secrets(text)[1]
    assert [text[secret.start : secret.end] for secret in secrets] == [KNOWN_PASSWORD]


def test_a_token_in_a_folder_name_is_removed() -> None:
    """A token in the name of a record's folder is removed from the whole record.

    The record's message contains only the end of the token, which no rule finds.
    """
    token = "glpat-Ab3dE7gH1jK9mN2pQ4rS"
    line = json.dumps(
        {"type": "user", "cwd": f"/w/{token}", "message": {"content": f"in {token[6:]}"}}
    ).encode()
    redactor = Redactor()
    redactor.learn_line(line)
    assert token not in redactor.redact_line(line)[0].decode()
    assert json.loads(redactor.redact_line(line)[0])["cwd"] == "/w/[secret removed: gitlab-pat]"
