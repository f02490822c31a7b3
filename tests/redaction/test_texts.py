"""Tests of secrets in texts: what is found, what is kept, and how the text looks afterwards."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.redaction.indicator_words import (
    HANDLERS_BY_WORD,
    _make_word_finder,
    make_regex_word_finder,
)
from resume_hooks.redaction.json_lines import redact_bytes, redact_line
from resume_hooks.redaction.texts import count_placeholders, find_secrets, redact
from resume_hooks.redaction.unescape import positions_of_invisible_characters
from tests.redaction.placed_forms import PLACED_FORMS
from tests.redaction.planted import FORMS, TEXT_WRITERS, Form, private_key, random_chars

RANDOM_GENERATOR = random.Random(3)
GITHUB_TOKEN = "ghp_" + random_chars(RANDOM_GENERATOR, 36)
FORMS_BY_NAME = {form.name: form for form in FORMS}


@pytest.mark.parametrize("write_text", TEXT_WRITERS, ids=lambda write_text: write_text.__name__)
def test_every_form_is_found_in_every_notation(write_text: Callable[[str], str]) -> None:
    """A secret of each form is removed completely, in every notation.

    Redacting the result again changes nothing.
    """
    for form in [*FORMS, *PLACED_FORMS]:
        secret = form.make_secret(random.Random(f"{form.name} {write_text.__name__}"))
        clean, found = redact(write_text(form.template.format(secret)))
        assert found, form.name
        assert secret not in clean, form.name
        assert redact(clean) == (clean, []), form.name


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "raise E('Unable to load the keyfile, Invalid password or PKCS12 data.')",
        "password = password or OAUTH2_DEFAULT_FILE_PASSWORD",
        'name:"unfold",bindKey:o("Alt-Shift-L|Ctrl-Shift-F1","Command-Alt-Shift-L")',
        "println!(%22key:+%7Bkey%7D+val:+%7Bval%7D%22);%0A",
        "    ssl_credentials (grpc.ChannelCredentials): Optional SSL channel\n",
        "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "export GITHUB_TOKEN=$GITHUB_PAT",
        'api_key = os.environ["API_KEY_1234567890"]',
        "password: ${{ secrets.DB_PASSWORD_2 }}",
        "API_KEY=<your-api-key-of-32-characters>",
        'password = getpass.getpass("Password: ")',
        "password: string;",
        "PASSWORD=changeme123",
        "self.password = make_password(user.password1)",
        "username, password = get_auth_from_url2(url)",
        "commit 5f3c9c1d2e4b6a7980c1d2e3f4a5b6c7d8e9f0a1",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        '"integrity": "sha512-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08=="',
        '"requestId": "req_011CSkYzZmrLKTfC5kKrttht", "uuid": "62e0bdc0-a1e4-4d5c-8509-3b9d0d57cc67"',
        "session token: 62e0bdc0-a1e4-4d5c-8509-3b9d0d57cc67",
        '"nextPageToken": "CAUQAA1b2c3d4e5f6g7h8i9j0"',
        "https://example.com/path?query=abc:def@ghi",
        "postgres://postgres:postgres@localhost:5432/app",
        "git@github.com:owner/repository.git",
        "max_tokens: 4096, input_tokens: 123456789012345678",
        "toolu_01AbCdEfGhIjKlMnOpQrStUv",
        "the password is required and must be 8 characters long",
        "[secret removed: 1password-service-account-token]",
        "password=[secret removed: password]",
        "eyJhbGciOiJIUzI1NiJ9",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "docker run -u www-data:www-data -p 80:80 image",
        "docker run -p 8080:80 mysql:8.0.36 && mkdir -p build/x1",
        "mysql -h db -p shop2024 < dump.sql; mysql -P 3306 -p3306",
        "docker login -u svc -p $REGISTRY_TOKEN1 && docker login --password-stdin",
        "sshpass -e ssh host1 && sshpass -f secret1.txt ssh host",
        "gpg --passphrase-file key1.txt; openssl rsa -passin env:KEY_PASS1 -pass file:pass1.txt",
        "ldapsearch -W -x -b dc=example1; redis-cli -a $REDIS_PASSWORD1 ping",
        r"net use Z: \\server1\share /persistent:yes",
        "ConvertTo-SecureString $env:PASSWORD1 -AsPlainText -Force",
        "<password>${db.password1}</password> <label>Password</label> <password>changeme</password>",
        "Cookie: _ga=GA1.2.1234567890.1234567890; lang=en; csrftoken=aB3dE6gH9kLmN0pQrS2tUvW4xYz",
        "self._auth = requests.auth.HTTPBasicAuth(user1, password1)",
        "machine api.internal login deploy password $TOKEN1",
        "line1\n-----END PRIVATE KEY-----",
        "$1 and $2 and $5 are arguments; echo $6$7",
        "curl -u user:password https://api.internal",
        'curl -u "$USER:$PASSWORD_1" https://api.internal',
        "date -u +%Y-%m-%dT%H:%M:%SZ",
        '"auth": "oauth2-with-pkce-2024"',
        "ENV API_KEY ${API_KEY_1234567890}",
        'os.environ["API_TOKEN"] == tokens["first_token_2"]',
        "\x1b[1mpassword\x1b[0m: \x1b[32mstring\x1b[0m",
        "\x1b[33mcommit 5f3c9c1d2e4b6a7980c1d2e3f4a5b6c7d8e9f0a1\x1b[m",
    ],
)
def test_false_secrets_are_kept(text: str) -> None:
    """Placeholders, examples, names, ids and hashes that resemble secrets are kept.

    This also applies to a text with terminal colors.
    """
    assert redact(text) == (text, [])


COLORED_FORMS = [
    "anthropic",
    "openai",
    "stripe",
    "npm",
    "google",
    "sendgrid",
    "databricks",
    "jwt",
    "github",
    "aws-id",
]
GREP_COLORS = ("\x1b[01;31m\x1b[K", "\x1b[m\x1b[K")


@pytest.mark.parametrize(
    "color_codes",
    [
        GREP_COLORS,
        ("\x1b[32m", "\x1b[0m"),
        ("\x1b[38;5;9m", "\x1b(B\x1b[m"),
        ("\x1b]8;;https://a.b/c\x1b\\", "\x1b]8;;\x1b\\"),
    ],
    ids=["grep", "sgr", "tput", "link"],
)
@pytest.mark.parametrize("form_name", COLORED_FORMS)
def test_colors_hide_no_secret(form_name: str, color_codes: tuple[str, str]) -> None:
    """A secret is removed even if a terminal's color codes are around or inside it."""
    secret = FORMS_BY_NAME[form_name].make_secret(random.Random(7))
    for cut in (len(secret), 5, len(secret) // 2):
        text = f"a.txt:{color_codes[0]}{secret[:cut]}{color_codes[1]}{secret[cut:]}\nnext"
        clean, found = redact(text)
        assert len(found) == 1
        assert not any(part in clean for part in (secret[:cut], secret[cut:]) if len(part) > 5)
        assert redact(clean) == (clean, [])
        for raw in (json.dumps({"message": {"content": text}}).encode(), text.encode()):
            line, in_line = redact_line(raw)
            assert len(in_line) == 1
            assert not any(
                part.encode() in line for part in (secret[:cut], secret[cut:]) if len(part) > 5
            )
        assert json.loads(redact_line(json.dumps({"message": {"content": text}}).encode())[0])
        assert len(redact_bytes(text.encode())[1]) == 1


INVISIBLE_CHARACTERS = [
    "\u200b",
    "\u00ad",
    "\u2060",
    "\u202e",
    "\ufeff",
    "\ufe0f",
    "\U000e0041",
    "\u3164",
    "\u180b",
    "\ufff9",
    "\x01",
    "\x9b",
]


@pytest.mark.parametrize(
    "invisible_character",
    INVISIBLE_CHARACTERS,
    ids=[f"{ord(character):x}" for character in INVISIBLE_CHARACTERS],
)
@pytest.mark.parametrize("form_name", COLORED_FORMS)
def test_invisible_characters_hide_no_secret(form_name: str, invisible_character: str) -> None:
    """A secret is removed even if invisible characters are inside it."""
    secret = FORMS_BY_NAME[form_name].make_secret(random.Random(7))
    for hiding in (secret[:5] + invisible_character + secret[5:], invisible_character.join(secret)):
        text = f"a.txt: {hiding}\nnext"
        clean, found = redact(text)
        assert len(found) == 1
        assert not any(
            secret[at : at + 6] in clean.replace(invisible_character, "")
            for at in range(len(secret) - 5)
        )
        assert redact(clean) == (clean, [])
        for raw in (
            json.dumps({"message": {"content": text}}, ensure_ascii=escaped).encode()
            for escaped in (False, True)
        ):
            line, in_line = redact_line(raw)
            assert len(in_line) == 1
            said = json.loads(line)["message"]["content"].replace(invisible_character, "")
            assert not any(secret[at : at + 6] in said for at in range(len(secret) - 5))


@pytest.mark.parametrize(
    "invisible_character",
    INVISIBLE_CHARACTERS,
    ids=[f"{ord(character):x}" for character in INVISIBLE_CHARACTERS],
)
def test_invisible_characters_hide_no_name(invisible_character: str) -> None:
    """A password is found even if the word before it, such as ``password``, has invisible characters."""
    for words in (
        f"pass{invisible_character}word = xho9ypjaxtbw",
        f"DB_PASS{invisible_character}WORD = xho9ypjaxtbw",
        f"password: {invisible_character}xho9ypjaxtbw",
    ):
        clean, found = redact(words)
        assert (len(found), "xho9yp" in clean) == (1, False)
    clean, found = redact(f"password: xh\u00f6{invisible_character}9ypjaxtbw")
    assert (len(found), "9ypjax" in clean) == (1, False)


def test_the_selector_of_an_emoji_is_not_reported_as_hidden() -> None:
    """The invisible selector of an emoji is not reported as an invisible character."""
    assert (
        list(
            positions_of_invisible_characters(
                "Done \u26a0\ufe0f all of it \U0001f3f4\U000e0067\U000e007f".encode()
            )
        )
        == []
    )


def test_a_token_in_the_address_of_a_terminal_link_is_removed() -> None:
    """A token in the address of a terminal link is removed."""
    clean, found = redact(f"\x1b]8;;https://a.b/?t={GITHUB_TOKEN}\x07here\x1b]8;;\x07")
    assert (GITHUB_TOKEN in clean, len(found)) == (False, 1)


@pytest.mark.parametrize(
    "token",
    ["ghr_" + "aB3dE6gH9k" * 7 + "aB3dE6", "glpat-aB3dE6gH9kLmN0pQrS2tUvW4xYz.01.0a1b2c3d4"],
)
def test_a_longer_token_is_removed_completely(token: str) -> None:
    """A token that is longer than its rule's pattern is removed completely, but not the period after it."""
    clean, found = redact(f"It is {token}. Then")
    assert len(found) == 1
    assert clean == f"It is [secret removed: {found[0].kind}]. Then"


@pytest.mark.parametrize(
    "template",
    [
        'os.environ["API_TOKEN"] = "{}"',
        "process.env['DB_PASSWORD'] = '{}'",
        "FROM x\nENV API_KEY {}\nRUN y",
        "//registry.internal/:_authToken={}",
        "AWS_SECRET_ACCESS_KEY={}",
        "curl -s -u deploy:{} https://api.internal/v1",
        "curl --user 'deploy:{}' https://api.internal/v1",
    ],
)
def test_secrets_in_settings_are_found(template: str) -> None:
    """Secrets in settings of programs, images and tools are removed from texts and records."""
    secret = random_chars(random.Random(7), 32)
    text = template.format(secret)
    assert redact(text)[0] == template.format(f"[secret removed: {redact(text)[1][0].kind}]")
    for content in (text, {"command": text}, json.dumps({"a": text})):
        assert (
            secret.encode()
            not in redact_line(json.dumps({"message": {"content": content}}).encode())[0]
        )


def test_a_hash_that_contains_a_placeholder_word_is_found() -> None:
    """A password hash is removed even if it contains a word such as "todo" by chance.

    Such a word occurs in one of two thousand hashes.
    """
    text = FORMS_BY_NAME["crypt-512"].make_secret(random.Random(166))
    assert "todo" in text.lower()
    assert redact(f"root:{text}:19000:0:99999:7:::")[0] == (
        "root:[secret removed: password-hash]:19000:0:99999:7:::"
    )


def test_a_key_may_begin_with_a_slash() -> None:
    """A key that begins with a slash is found, and a path in the same position is kept."""
    assert len(find_secrets("AWS_SECRET_ACCESS_KEY=/8J35NRq7IEeLjhF8Cd7GXzdTBW9JH4NJ82IVN+9")) == 1
    assert find_secrets("SECRET_KEY=/home/deploy/keys/production2/server") == []


def test_the_credentials_of_docker_are_found() -> None:
    """The credentials in the settings of Docker, a name and a password in base64, are removed."""
    secret = FORMS_BY_NAME["basic"].make_secret(random.Random(7))
    for text in (
        json.dumps({"auths": {"r.io": {"auth": secret}}}),
        f"//registry.internal/:_auth={secret}",
    ):
        assert secret not in redact(text)[0]
        assert (
            secret.encode()
            not in redact_line(json.dumps({"message": {"content": text}}).encode())[0]
        )


def test_a_truncated_private_key_is_removed() -> None:
    """A private key without its end is removed completely."""
    key = private_key(RANDOM_GENERATOR)[:600]
    clean, found = redact(f"before\n{key}")
    assert (clean, [secret.kind for secret in found]) == (
        "before\n[secret removed: private-key]",
        ["private-key"],
    )


def test_offsets_of_secrets_are_in_characters() -> None:
    """The positions of secrets are counted in characters, even after text in other scripts."""
    text = f"schlüssel — \U0001f511 {GITHUB_TOKEN}"
    (secret,) = find_secrets(text)
    assert text[secret.start : secret.end] == GITHUB_TOKEN


def test_lone_surrogates_are_kept() -> None:
    """Lone surrogates, which UTF-8 can't encode, are kept in a text."""
    assert redact(f"\ud83d {GITHUB_TOKEN} \udc00") == (
        "\ud83d [secret removed: github-pat] \udc00",
        find_secrets(f"x {GITHUB_TOKEN}"),
    )


def test_placeholders_are_counted() -> None:
    """``count_placeholders`` returns the number of secrets that were removed."""
    clean, _ = redact(f"{GITHUB_TOKEN} and PASSWORD=Zx91kkqW22")
    assert count_placeholders([clean, "nothing here"]) == 2


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(FORMS), st.integers(0, 10_000))
@settings(max_examples=60)
def test_a_secret_is_found_in_any_text(before: str, after: str, form: Form, seed: int) -> None:
    """A secret is found whatever text surrounds it, and redacting the result again changes nothing."""
    text = f"{before}\n\n{form.template.format(form.make_secret(random.Random(seed)))}\n\n{after}"
    clean, found = redact(text)
    assert found
    assert redact(clean) == (clean, [])


@given(st.lists(st.sampled_from([*HANDLERS_BY_WORD, b"x", b" "]), max_size=12))
def test_both_word_finders_give_the_same_result(parts: list[bytes]) -> None:
    """Both implementations that find indicator words give the same result.

    Words within other words are found, too.
    """
    text = b"".join(parts)
    every = {
        (n, at)
        for n, word in enumerate(HANDLERS_BY_WORD)
        for at in range(len(text))
        if text.startswith(word, at)
    }
    assert set(_make_word_finder()(text)) == set(make_regex_word_finder()(text)) == every


@pytest.mark.parametrize(
    "text",
    [
        "[sudo via ansible, key=ouzmdnewuhuc] password: debug3: receive packet: type 98",
        '{"change_password": "1/m/ip"}',
        "util.stripUrlPassword('http://d@bb.net:scrt@foo.com/bar')",
        "ox:url=http://login:pass@node1.domain.tld:8009/preliminary/v1/notify",
        "userdb passwd: blocking=yes in args",
        "Aborted login (tried to use disallowed plaintext auth): rip=190.210.136.21, lip=113.212.9.1",
        "SASL LOGIN authentication failed: UGFzc3dvcmQ6",
        "Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==",
        "pgsql_servers = slave1/db/name/pw:slave2/db/name/pw",
        "can't find the secret value for VersionId: 00000000-0000-0000-0000-000000000000",
        "can't find the secret value for VersionId: 6d1b6c0e-0a4e-4f5b-8a3c-2f1f6e0f1a2b",
        "enrtree://AKA3AM6LPBYEUDMVNU3BSVQJ5AD45Y7YPOHJLEF6W26QOE4VTUDPE@all.sepolia.ethdisco.net",
        'aws_access_key = safequote("ABCDEFGHIJKLMNOPQRST")',
        "account_key: Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
        'for example "{plain}plaintext-password"',
        'user = "bob", passwd: str = "changepw"',
        "* NEWS, contrib/ftpasswd: Bug#2371 - ftpasswd should lock the file",
        "groupname:grouppasswd:gid:member1,member2,...memberN",
        "Optionally provide the login and password externally.",
        '### snmpv3 <a id="plugin-check-command-snmpv3"></a>',
        "  --dns-rfc2136-credentials DNS_RFC2136_CREDENTIALS\n",
        "backup to b2://account_id:application_key@bucket/",
        "Secret 1b40a534-8301-45d5-b1aa-11894ebb1735 created\n",
        '<img src="https://codecov.io/gh/a/b/branch/master/graph/badge.svg?token=QZMWDu35ds">',
        "improper validation on SSO login (Fixes: CVE-2024-55919)",
        "ATTRIBUTE\tSSHA1-Password\t1094\toctets\nATTRIBUTE\tSMD5-Password-V2\t1095\toctets\n",
        "passwd    = 1*SAFE ; MUST accept up to 255 octets",
        "a.mode: attribute\na.body: attribute\na.auth_password: attribute\na.user: attribute\na.url: attribute\n",
        "Swap user for pass since our input is: password:email\n",
        "The configured external_auth:file:^filename (%s)",
        "set_network private_key_passwd2 wpa-private-key-passwd2\n",
        "encrypt --session-key aes128-cbc --xml-data doc.xml",
        "// ibPassword: 2-byte",
        'if (!lookup_user("$fr.uid", "@from.uri")) {',
        'private_key="pkcs11:manufacturer=piv_II;id=%01"',
        'you can now say, e.g., "PSK:-PSK:HIGH" to enable it',
        "$ gpg --recv-key C94035C21B4F2AEB",
        "Our token looks like: xoxb-1234-1234-abc124 or",
    ],
)
def test_texts_of_logs_and_documents_are_not_secrets(text: str) -> None:
    """Texts of logs and documents that resemble secrets are kept.

    Examples are labels, reasons of failures, addresses, ids and public keys.
    """
    assert redact(text) == (text, [])


@pytest.mark.parametrize(
    "template",
    [
        "set the password to {}",
        "Set bob's password to '{}'.",
        "I changed the admin password to {}, ok",
        "{} is the password",
        "`{}` is the password for root.",
        "log in as bob with {}",
        "log in as bob with password {} please",
        "host db1 (pw {})",
        "(user bob, password {})",
        "Password:\n{}\n",
        "export DBPW={}",
        "gh secret set DB_PASSWORD --body {}",
        'gh secret set APP --repo o/r -b "{}"',
        "kubectl create secret generic db --from-literal=k={}",
        "kubectl create secret generic db \\\n  --from-literal=u=bob \\\n  --from-literal=k={}",
    ],
)
def test_passwords_in_sentences_and_commands_are_found(template: str) -> None:
    """Passwords in sentences and commands are removed."""
    for value in ("vkWqzTe482Q", "Tr0ub4dor9x"):
        assert value not in redact(template.format(value))[0]


@pytest.mark.parametrize(
    "text",
    [
        "kubectl create configmap c --from-literal=log.level=debug-v2",
        "set the password to required",
        "SHA256 is the password hash",
        "python3 is the password",
        "log in as root with ssh-ed25519",
        "(password required)",
        "user bob: authentication failure (password mismatch?)",
        "Password:\nWelcome to Ubuntu\n",
        "password:\n  required: true\n",
        "secrets:\n  build-token2:\n",
    ],
)
def test_sentences_about_passwords_stay(text: str) -> None:
    """Sentences about passwords are kept, including those that contain the name of a standard."""
    assert redact(text) == (text, [])


@pytest.mark.parametrize(
    "text", ["--- PASS: TestE2EHandoff2Fork (0.10s)", "PASS: test-push_7xTLS", "PASS: TestPull2Go"]
)
def test_the_name_of_a_passed_test_is_not_a_password(text: str) -> None:
    """The name of a test after ``PASS:`` is kept."""
    assert redact(text) == (text, [])


@pytest.mark.parametrize(
    ("template", "password"),
    [
        ("postgres://app:{}@db/x", "tixlzwxu"),
        ("redis://:{}@cache:6379", "hogypjax"),
        ("https://bob:{}@host/p", "sunflower"),
        ("amqp://rabbit:{}@mq/v", "polmwexi"),
        ("mysql -uroot -p{} shop", "hogypjaxtb"),
        ("curl -u bob:{} https://x.io", "qazvtmlp"),
        ('password = "{}"', "sunshine"),
        ("DB_PASSWORD={}", "football"),
        ("user: app\npassword: {}\n", "football"),
        ('DBI->connect("dbi:Pg:dbname=x", "u", "{}")', "qlpzmxnotr"),
    ],
)
def test_passwords_of_letters_are_found_by_their_position(template: str, password: str) -> None:
    """A password of letters only is removed if its position identifies it, for example in a URL."""
    assert password not in redact(template.format(password))[0]


@pytest.mark.parametrize(
    "text",
    [
        "https://user:password@host/",
        "postgres://postgres:postgres@localhost/",
        "password = getpass()",
        "{ username: string, password: string }",
        "username, password = index_url_user_password\n",
        'consumer_secret="consumer.secret"',
        "<password>required</password>",
        "requests.get(url, auth=('user', 'pass'))",
    ],
)
def test_names_and_examples_are_not_secrets(text: str) -> None:
    """Common examples, and names of variables, are kept."""
    assert redact(text) == (text, [])


@pytest.mark.parametrize("before", ["3:", ".env:3:", "config/.env:12:", ".env:", "3-", "10:42:31:"])
def test_a_prefix_of_grep_hides_no_secret(before: str) -> None:
    """A secret is removed even if ``grep`` printed a line number or a file name before it."""
    assert "zt7Qm2Lk9Xw4" not in redact(f"{before}DB_PASSWORD=zt7Qm2Lk9Xw4Rb8Nc3Vd")[0]
    assert "zt7Qm2Lk9Xw4" not in redact(f'{before}password = "zt7Qm2Lk9Xw4Rb8Nc3Vd"')[0]


@pytest.mark.parametrize(
    "text",
    [
        '{"value": "production", "name": "DB_PASSWORD"}',
        '{"value": "Tr0ub4dor9x", "name": "greeting"}',
        '{"name": "DB_PASSWORD", "value": ""}, {"name": "greeting", "value": "Tr0ub4dor9x"}',
        "~ password = (sensitive value) -> (sensitive value)",
        "kind: ConfigMap\ndata:\n  blah: VHIwdWI0ZG9yOXg=\n---\nkind: Secret\n",
        "kind: Secret\ndata:\n  blah: {{ .Values.secret | b64enc }}\n",
        "kind: SecretStore\ndata:\n  blah: VHIwdWI0ZG9yOXg=\n",
        "the kind: secret santa\ndata: blah\n",
        "&quot;password&quot;: &quot;&quot;",
    ],
)
def test_a_name_and_value_without_a_secret_are_kept(text: str) -> None:
    """A pair of name and value is kept if it contains no secret.

    In these pairs, the name announces no secret, or the value is empty or a template.
    """
    assert redact(text) == (text, [])


@pytest.mark.parametrize(
    "text",
    [
        "export declare function pbkdf2Sync(password: Uint8Array, salt: Uint8Array, rounds: number)",
        "config: Node<Params> & { credentials?: AwsSnsV1Credentials };",
        'inputs["clientSecret"] = args?.clientSecret;',
        'os.environ["TRACKING_PASSWORD"] = internal_token',
        "user_input[CONF_PASSWORD] = self.zone.options.password",
        'EMAIL_VERIFICATION_SESSION_KEY = "account_email_verification_code"',
        "vosk/community = local.services.transcribe.plugins:vosk_package",
        "pip install -U chain-community pypdf2x",
        'const JsonWebKey_1 = require("../models/OAuth2ResourceServerJsonWebKey");',
        "throw new base_1.RequiredError('ServerApi', 'getOAuth2TokenForApplication', 'appId');",
        "const p = new BN('2e1b162f326430f5ac6af10f96b2a8350e01675d22324c9f', 'hex');",
        "case 13:o.key=e.altKey?r.C0.ESC+r.C0.CR:r.C0.CR,o.cancel=!0",
        'e.type==="search"||"password"===e.type2||"textarea"===t',
        "dynamic_api_key = get_secret_str('AI21_API_KEY')",
        "S3 bucket_name is required. Pass 's3_bucket_name', or set it in the settings",
        'translation_key="pm25_indoor_aqi_24h_average",',
        '/** Dictionary for password validation. Options: "en_10k" (10,000 common words)',
        "user: bob\nso the secret that was there is already gone",
        "a test that validating a user create request succeeds.",
        "}\\n.icon.a_security {\\n    -webkit-mask-image: none",
        "The encryption_key: Base64 encoded key of the customer",
        "names such as `pgpKey`, `secret`, `sesSmtpPasswordV4`, and others",
        'canonical_package_key = "@babel/core@7.21.0"',
        'e("label",{htmlFor:"auth_password"},"Password:",d?i.createElement("code",null," ****** "):1)',
        'Password for encrypting the archive when format is set to "pkcs12_bundle".',
        'crypto_key="different-gcp-key-name"',
        "users don't have to pass `context`, re: gh-10132, gh-10346",
        "The proxy has received username/password SOCKS5 credentials.",
        "F.Minipass=F.isWritable=F.isReadable=F.isStream=void 0;var kr",
        '"community:force:create", "force:community:list:template"',
        "IMAGE_MD5_KEY: '144c9defac04969c7bfad8efaa8ea194',",
        'extra_secret = "%s:plain_password_hex2:%s"',
        "auth: https://x-token-auth:my-token@host.org/org/repo.git",
        'local password = module:require "muc/password";',
        'stanza:get_child("preauth", "urn:xmpp:pars:0");',
        "srx2_pass = getpass()\nnet_connect.password = srx2_pass\n",
        '{"username": "admin", "password": s300_pass, "session": 1}',
        "-record('Value',{\ngenPasswd = asn1_NOVALUE}).",
        "load_cert(name, passphrase=pkcs12_passphrase, get_encoding=True)",
        'IS_APP_TOKEN = re.compile(r"^[a-z0-9]{80,}==$", re.I)',
        'secret = getText(base64.b64encode(b"root:x:0:0:root:/root:/bin/sh"))',
        'Cleartext-Password := "%{control:User-Password}"',
        "ntlm auth = mschapv2-and-ntlmv2-only",
        "if([Vs,Ks].includes(t.key))i=e[t.key===Vs?0:e.length-1];else{",
        "e[s-1].token===r.token-1&&e[r.end+1].token===o.token+1,a=String",
        "th=Bt.getOwnPropertySymbols,pw=ho?ho.isBuffer:e,vg=ie.isFinite",
        "PAYLOAD_SIGNING_KEY = 'hostSettings:mailEventsPayloadSigningKey';",
        "User Name:service_account\nPassword:\nSSH@Lab-ICX7250#\n",
        "MGI Login: GET / HTTP/1.0",
        'debug("drda.Helper.login: ERROR: DB2Socket error: %s", err)',
        'the port has been identified as "ms-sql-s" or',
        "Using the method identified by `algorithm8`, it attempts",
        "ipass\t2549/tcp\t0.000000\n",
        "-- TopSecret: TSS7145E\n",
        "'userEmpty': 'The user name is empty!', 'passwordEmpty': 'The password is empty!'",
        "--user bob\n\n**Example 2: To delete a secret immediately**\n",
        '("authtoken", "0002_auto_20160226_1747"),',
        'create_user("test1", "noreply1@weblate.org", "pass")',
        '"last_login": "2013-10-09T17:28:56.639",',
        'session_key = f"search_{base.cache_key}_{search_url}"',
        "let s:netrw_passwd = s:netrw_hup[host].passwd\n",
        "let g:passwd = a:dict.istemp ? 1 : 2",
        "syn keyword tsaltSysVar\t_no_connect1 _no_connect2\nsyn keyword tsaltSysVar\t_no_connect4 x\n",
        "syn keyword winbatchImplicit n3captureprt n3chgpassword n3detach n3dirattrget\n",
        "getSetCookie: kEnumerableProperty,\n",
        "pY2EwHhcNMjEw\nEAAAAAAAAAAAAAAAAAAAAAGIBCoDBAUwDgYDVR0PAQH/BAQD",
        "$ aws configure get aws_access_key_id\ndefault_access_key\n",
        "Password not found. Set CPOLAR_PASSWORD environment variable or run",
        "opts='pass= bitrate= fixed_quant= me_quality='",
        "Defaults\tmail_badpass\nDefaults\tsecure_path=/usr/bin\n",
        "session.signingKey = sessionData.keysClaimed?.['ed25519'];",
        "pw = 2.0**self.frac_bits\n",
        'username=%PPP_Request.username% password=%PPP_Request.password%")',
        "TPM2B_AUTH = TPM2B_DIGEST\n",
        "v{LOioerhGTJH4ad%{Nq3`46cwlyLhzc!PW=UKTzK%%?ErMPipTAc?#`aQ_a=!Lk=_P8;igs*L94",
        "mysql://db.internal:3307?vault_mount=kv&vault_secret=database%2Fprod",
        "'Crypto-Key': 'p256ecdsa=' + publicKey",
        '{"password": "%(encrypted_password)s"}',
        "_PKCS12_KEY = '_private_key_pkcs12'",
        "'ConsoleAuthToken': '1.3-64803f4ab6b1bf92af587bbf21793390',",
        "Return the code object for the module identified by 'fullname'.",
        "const SECRET = process.env.WEBHOOK_SECRET!;",
        "returns the value of the metric identified by 'metric_name' or None",
        'e.has_role_for_user("alice", "data2_admin")',
        'InferenceClient("meta-llama/Llama-3.2-11B-Vision-Instruct")',
        'helper._prepare_url("hf_token", "Qwen/Qwen3-Embedding-0.6B")',
        '(such as "a/../../etc/passwd" or "a/../file.txt")',
        '"ssh://687fb701029421ae5549d998@ssh.hf.jobs"',
        "# Organization: Buypass AS-983163327\n",
        "<xades:ByKey>9cpWdJbojAeA6Y00VSt4FAd2yco=</xades:ByKey>",
        '<dsig11:DEREncodedKeyValue xmlns:dsig11="x">MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQc</dsig11:DEREncodedKeyValue>',
        "#   def record_handler(record): pass # noqa: ERA001\n",
        "[--client-id CLIENT_ID] [--client-secret CLIENT_SECRET] [--token-url TOKEN_URL]",
        "x.fully_qualified_key == 'kind1:key%25with%3Athings'",
        '{htmlFor:"auth_password"},"Password:"),$?Re.createElement("code",null," ****** ")',
        "ret = func(False)  # Second pass => first_pass=False\n",
        'provider = "pass"\nvalue = "does-not-exist-$$"\n',
        "- name: Login to the registry\n  uses: docker/login-action@5e57cd118135c172c3672efd75eb46360885c0ef",
        'if test "$linkmode,$pass" = "prog,link"; then',
        'COOKED_PASS = expect_failure ? "XPASS": "PASS"',
        "case S_Pass:\n    CHECK_b1;",
        "exports.create_NT_hashed_password = create_NT_hashed_password_v1;",
        "std::string passphrase = passwordUtf8;",
        "'secret': 'V1SecretVolumeSource',",
        "class MyDBusServerAuth : public IMyDBusAuth\n",
        "t/lib-credential: use test_i18ncmp to check stderr",
        "tunnel = sgw_tunnel_add(bearer, GTP_F_TEID_S1_U_SGW_GTP_U);",
        'new FileSetupUtil("certificateUtilTest/b38b4d8c-invalid.0");',
        'map.checkUser("/O=Grid/OU=mcs.anl.gov/CN=Michael Dvorak", "dvorak2"));',
        '"spdx_license_key": "LicenseRef-scancode-acki-nacki-node-2024-10-04",',
        "group_name:password:GID:user_list\n",
        "login_name:passwd:UID:GID:user_name:directory:shell\n",
        '"NORMAL:+ECDHE-PSK:+PSK:+ECDHE-ECDSA:+AES-128-CCM-8"',
        "[-Community::EmptyReturn]",
        "com.google.auth:google-auth-library-oauth2-http:1.3.0 - https://github.com/x",
        '"reauth": "pyu2f>=0.1.5",',
        "arn:aws:secretsmanager:region:account-number:secret:myselfmanagedADtestsecret-123456 ",
        "https://drive.google.com/drive/folders/0B_x?resourcekey=0-Cfr5D94rZ8LVbeMPGjxbdg&usp=sharing",
        "sig_key: 51:C4:0C:6D:7E:A5:6C:D8:8F:B4:3A:DF:91:78:4F:18:BC:D5:E4:C5\n",
        "* Add new upstream signing key 19882D92DDA4C400C22C0D56CC2AF4472167BE03\n",
        "The default password hashing algorithm is now Argon2id. The function",
        "* Pass admindir to dpkg, Closes: Bug#54039\n",
        "encryption_key: AES256 encryption key to use when creating an object",
        "extra check for a bad passphrase and/or unknown cipher algorithm\n",
        "Marx CrypToken MX2048-JCOP USB Token\n",
        "# cram-hmac-alg ko-count shared-secret after-sb-0pri\n",
        "$ podman login -u testuser -p testpassword localhost:5000\n",
        "- The `--secret type=mount` option to `run`",
        '"username= message= passphrase= password= scmVersion= $(list)"',
        "# hashedPassword = base64_encoded_64_byte_salt W base64_encoded_hash\n",
        'fprintf(stderr, "SET PASSWORD failed!\\n");',
        "The max size for secret data is 512kB.\n",
        "implemented on top of the Internet User Datagram Protocol (UDP)",
        "makeinfo --plaintext install.texi > INSTALL",
        "shfmt -ln bash -d -w man/*.sh script/*",
        "cvs://:pserver:anoncvs@sources.redhat.com:/cvs/src",
        'OAUTH = "oauth2-client-secret=OAUTH2-CLIENT-SECRET]"',
        "s.ActiveSharedFolders28Day = ActiveSharedFolders28Day\n",
        'conf.ClientSecret = "CLIENT_SECRET??"',
        f"backupKey: 'xpub661{'MyMwAqRbcFXDcWD2vxuebcT1ZpTF4Vke6qmMW8yzddw' * 3}'",
        '"hashed_secret": "014ffd5d9d83ce2dc682d2d87323ac09d1215b09",',
        'oauth_key = OAuthParameters.OAUTH_KEY+" "+",".join(parts)',
        "oauth_key = self.getOAuthKey(uri,request.method,request.data,request.params)",
        "my-redis-host:6380:1:verysecretpass:my-app-namespace",
        'x = "AAABi6QAAAAB7DkAADowAAAQAAADT9gAAAAI/EAAA99cAAALr9gAAlhYBAAGSWQAAAAACTrEAACfHAAA="',
    ],
)
def test_names_in_programs_are_not_secrets(text: str) -> None:
    """Names in program code that resemble secrets are kept.

    Examples are types, paths, settings, standards and packed code.
    """
    assert redact(text) == (text, [])


@pytest.mark.parametrize(
    "text",
    [
        "password: Summer24Rain",
        'config["password"] = "Uint8Rain7"',
        "DB_PASSWORD=SUMMER_RAIN_24",
        "snmp_community: Xk72pQ",
        "db_password: rain_2x_pass\n",
        "{user: bob, password: rain_in_24}",
        "user=bob, password=rain_in_24, host=db",
        "kv/app/password: Summer#2024\n",
        "admin password: Summer#2024 for the db",
        "|user|password|\n|---|---|\n|user|Summer-2024|\n",
        "the client secret is 1b40a534-8301-45d5-b1aa-11894ebb1735",
        "user bob password sunflower\n",
        "host: sunflower\nuser: sunflower\ndb: sunflower\npassword: sunflower\n",
        "https://bob:hockey-monkey@host/",
        "CREATE USER x IDENTIFIED WITH sha256_password AS 'Summer#2024'",
        "Password:\nxK9#mQ2pLz7w\n",
        "setenv DB_PASSWORD sunflower\n",
        "REDIS_PASSWORD=rain:sun7flower\n",
        "create user app identified by 'sunflower';\n",
        "user bob, the password is Summer-2024!\n",
    ],
)
def test_a_password_that_looks_like_a_name_is_found(text: str) -> None:
    """A password that looks like a name is found if the text contains no declaration of this name."""
    assert len(redact(text)[1]) == 1
