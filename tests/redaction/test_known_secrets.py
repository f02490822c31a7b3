"""A value that a rule found once is gone everywhere, and words that only look like one stay."""

from __future__ import annotations

import json

import pytest

from resume_hooks.redaction.known_secrets import Redactor

VALUE = "xho9ypjaxtbw"
RAW = f"deploy with:\npassword: >-\n  {VALUE}\nand tell me"
GONE = "[secret removed: password]"


@pytest.mark.parametrize(
    "text",
    [
        f"deploy with: password: >- {VALUE} and tell me",
        f"/srv/{VALUE}.txt",
        f"a{VALUE}b",
        f'{{"a": "{{\\"b\\": \\"{VALUE}\\"}}"}}',
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
def test_a_value_is_gone_in_every_form(text: str) -> None:
    """On one line, in a path, escaped, folded, in quotes, coloured, cut."""
    clean = Redactor([RAW]).redact(text)
    assert GONE in clean
    assert not any(
        VALUE[at : at + 3] in clean
        for at in range(len(VALUE) - 2)
        if "…" not in text or at in {0, 9}
    )


def test_a_value_is_learned_as_it_is_seen() -> None:
    """Characters without a picture in the place where a rule finds it are not part of it."""
    redactor = Redactor(["password: xho9\u200byp\u2060jaxtbw"])
    assert redactor.redact(f"the value {VALUE} is old") == f"the value {GONE} is old"
    line = json.dumps({"message": {"content": "it is " + "\u200b".join(VALUE)}}).encode()
    for simplify_name_pattern in (line, line.replace(b"200b", b"200B")):
        assert json.loads(redactor.redact_line(simplify_name_pattern)[0]) == {
            "message": {"content": f"it is {GONE}"}
        }


def test_percent_encoding_is_looked_through() -> None:
    """An address contains the value in its own form."""
    redactor = Redactor(['password = "Xk9&q+zz/Wd"'])
    assert (
        redactor.redact("see https://host/?q=Xk9%26q%2Bzz%2FWd now")
        == f"see https://host/?q={GONE} now"
    )


def test_a_private_key_is_gone_line_by_line() -> None:
    """A patch shows single lines of a key."""
    body = [
        "MIIEpAIBAAKCAQEAx7dJq0m1Zs8yV2bTnRkLw3cHfGp5uE9o",
        "Jd8sKqPzXv6bYtR4nWm2cLf7hGa9eTk3uIo5yQx1ZrBwVsNj",
    ]
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(body) + "\n-----END RSA PRIVATE KEY-----"
    assert body[1] not in Redactor([key]).redact(f"+ {body[1]}")


def test_a_word_goes_only_next_to_a_word_that_tells() -> None:
    """``sunshine`` is a password where it is called so, and weather elsewhere."""
    redactor = Redactor(["DB_PASSWORD=sunshine"])
    assert redactor.redact("A day of sunshine.") == "A day of sunshine."
    assert redactor.redact("sunshines are no passwords") == "sunshines are no passwords"
    assert (
        redactor.redact("the password, they say, is still sunshine.")
        == f"the password, they say, is still {GONE}."
    )


def test_a_value_that_everybody_uses_goes_only_where_a_rule_finds_it() -> None:
    """Else a document would lose the names of its programs."""
    redactor = Redactor(["POSTGRES_PASSWORD=postgres", "https://a:b2x@h/", "password: changeme"])
    text = "postgres password and b2x"
    assert redactor.redact(text) is text


def test_an_id_that_is_spared_stays() -> None:
    """A lineage names sessions by their ids, even where a rule takes one for a token."""
    session = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
    redactor = Redactor()
    redactor.exclude_names([session])
    redactor.learn_text(f"API_TOKEN={session}")
    assert redactor.redact(f"1. a · {session}") == f"1. a · {session}"
    assert session not in Redactor([f"API_TOKEN={session}"]).redact(f"1. a · {session}")


def test_nothing_learned_changes_nothing() -> None:
    """The rules alone then decide."""
    text = "nothing to see"
    assert Redactor(["no secret"]).redact(text) is text


def test_a_line_of_a_transcript_stays_json() -> None:
    """Values go from patches, folders, names of files and keys; ids stay."""
    record = {
        "type": "user",
        "uuid": VALUE,
        "cwd": f"/srv/{VALUE}",
        "message": {"content": f"é {VALUE[:4]}\n{VALUE[4:]}"},
        "toolUseResult": {"structuredPatch": [{"lines": [f"+{VALUE}"]}], f"/a/{VALUE}": 1},
        "snapshot": {"trackedFileBackups": {f"/srv/{VALUE}": {"backupFileName": "x"}}},
    }
    redactor = Redactor()
    redactor.learn_line(json.dumps({"message": {"content": RAW}}).encode())
    clean, found = redactor.redact_line(json.dumps(record).encode())
    assert json.loads(clean) == {
        "type": "user",
        "uuid": VALUE,
        "cwd": f"/srv/{GONE}",
        "message": {"content": f"é {GONE}"},
        "toolUseResult": {"structuredPatch": [{"lines": [f"+{GONE}"]}], f"/a/{GONE}": 1},
        "snapshot": {"trackedFileBackups": {f"/srv/{GONE}": {"backupFileName": "x"}}},
    }
    assert len(found) == 5


def test_a_torn_line_is_text() -> None:
    """A line that a crash cut is read, too."""
    redactor = Redactor([RAW])
    assert VALUE.encode() not in redactor.redact_line(b'{"a": "' + VALUE.encode())[0]


def test_places_count_characters() -> None:
    """As those of ``find_secrets`` do."""
    text = f"é {VALUE} ü"
    secrets = Redactor([RAW]).redact_and_list_secrets(text)[1]
    assert [text[secret.start : secret.end] for secret in secrets] == [VALUE]


def test_a_token_in_the_name_of_a_folder_is_gone() -> None:
    """No rule looks at a record's folder.

    A token in it is known once the record was learned, from every field.
    """
    token = "glpat-Ab3dE7gH1jK9mN2pQ4rS"
    line = json.dumps(
        {"type": "user", "cwd": f"/w/{token}", "message": {"content": f"in {token[6:]}"}}
    ).encode()
    redactor = Redactor()
    redactor.learn_line(line)
    assert token not in redactor.redact_line(line)[0].decode()
    assert json.loads(redactor.redact_line(line)[0])["cwd"] == "/w/[secret removed: gitlab-pat]"
