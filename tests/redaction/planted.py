"""Invented secrets of many kinds, and ways to write them to a transcript.

Half of the forms are held out, which means that the rules were never adjusted to these forms.
"""

from __future__ import annotations

import base64
import functools
import json
import random
import re
import string
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from resume_hooks.redaction.load_rules import RULES_FILE

ALNUM = string.ascii_letters + string.digits
HEX_DIGITS = "0123456789abcdef"
UPPER_CHARS = string.ascii_uppercase + string.digits
HASH_CHARS = ALNUM + "./"
SAMPLE_UUID = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"


class Form(NamedTuple):
    """A form of secret. In the field ``template``, ``{}`` is the place of the secret."""

    name: str
    make_secret: Callable[[random.Random], str]
    template: str = "{}"
    is_held_out: bool = False


def random_chars(rng: random.Random, length: int, letters: str = ALNUM) -> str:
    """Return ``length`` random characters, of which at least one is a digit."""
    made = "".join(rng.choice(letters) for _ in range(length - 1))
    place = rng.randrange(len(made) + 1)
    return made[:place] + rng.choice(string.digits) + made[place:]


def random_base64(rng: random.Random, byte_count: int) -> str:
    """Return random bytes in URL-safe base64, without padding."""
    return base64.urlsafe_b64encode(rng.randbytes(byte_count)).decode().rstrip("=")


def private_key(rng: random.Random, kind: str = "RSA ") -> str:
    """Return a private key that is not used anywhere."""
    body = base64.b64encode(rng.randbytes(900)).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join(
        [f"-----BEGIN {kind}PRIVATE KEY-----", *lines, f"-----END {kind}PRIVATE KEY-----"]
    )


def web_token(rng: random.Random) -> str:
    """Return a signed JSON web token."""
    head, body = (
        {"alg": "HS256", "typ": "JWT"},
        {"sub": random_chars(rng, 12), "iat": rng.randrange(10**9)},
    )
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in (head, body)
    ]
    return ".".join([*parts, random_base64(rng, 32)])


def random_password(rng: random.Random, length: int = 12) -> str:
    """Return a password of letters, digits and one punctuation character."""
    return random_chars(rng, length - 1) + rng.choice("!%^*_-+")


def basic_credentials(rng: random.Random) -> str:
    """Return credentials for basic authentication."""
    return base64.b64encode(f"svc-deploy:{random_chars(rng, 14)}".encode()).decode()


def in_base64(secret: str | bytes) -> str:
    """Return a text in base64 with padding."""
    return base64.b64encode(secret.encode() if isinstance(secret, str) else secret).decode()


def key_lines(rng: random.Random) -> str:
    """Return the lines of a private key between its first and its last line."""
    return private_key(rng).split("\n", 1)[1].rsplit("\n", 1)[0]


def random_uuid(rng: random.Random) -> str:
    """Return a random id, which some services use as a token."""
    return "-".join(random_chars(rng, count, HEX_DIGITS) for count in (8, 4, 4, 4, 12))


def slack_token(rng: random.Random) -> str:
    """Return a token of a Slack bot."""
    first, second = (random_chars(rng, 12, string.digits) for _ in range(2))
    return f"xoxb-{first}-{second}-{random_chars(rng, 24)}"


FORMS = [
    Form("github", lambda r: "ghp_" + random_chars(r, 36)),
    Form("github-assigned", lambda r: "ghp_" + random_chars(r, 36), "export GITHUB_TOKEN={} && gh pr list"),
    Form("gitlab", lambda r: "glpat-" + random_chars(r, 20), "glab auth login --token {}"),
    Form("npm", lambda r: "npm_" + random_chars(r, 36), "//registry.npmjs.org/:_authToken={}"),
    Form("pypi", lambda r: "pypi-AgEIcHlwaS5vcmc" + random_base64(r, 90), "password = {}"),
    Form("slack", slack_token),
    Form("aws-id", lambda r: "AKIA" + random_chars(r, 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
         "aws_access_key_id = {}"),
    Form("aws-secret", lambda r: random_chars(r, 40, ALNUM + "/+"), "AWS_SECRET_ACCESS_KEY={}"),
    Form("anthropic", lambda r: "sk-ant-api03-" + random_chars(r, 93, ALNUM + "-_") + "AA", "ANTHROPIC_API_KEY={}"),
    Form("openai", lambda r: "sk-proj-" + random_chars(r, 48, ALNUM + "-_"), 'client = OpenAI(api_key="{}")'),
    Form("stripe", lambda r: "sk_live_" + random_chars(r, 24), "curl https://api.stripe.com/v1/charges -u {}:"),
    Form("jwt", web_token, "Authorization: Bearer {}"),
    Form("rsa", private_key),
    Form("password-env", random_password, "DB_HOST=db.internal\nDB_PASSWORD={}\nDB_PORT=5432"),
    Form("password-json", random_password, '{{"user": "svc", "password": "{}", "port": 5432}}'),
    Form("postgres", lambda r: random_chars(r, 14), "postgresql://svc:{}@db.internal:5432/main"),
    Form("bearer", lambda r: random_chars(r, 40), "curl -H 'Authorization: Bearer {}' https://api.internal/v2"),
    Form("basic", basic_credentials, "Authorization: Basic {}"),
    Form("google", lambda r: "AIza" + random_chars(r, 35, ALNUM + "-_"), "const key = '{}';"),
    Form("azure-storage", lambda r: base64.b64encode(r.randbytes(64)).decode(), "AccountName=x;AccountKey={};Suffix=y"),
    Form("huggingface", lambda r: "hf_" + random_chars(r, 34), "HF_TOKEN={}", is_held_out=True),
    Form("sendgrid", lambda r: f"SG.{random_base64(r, 16)}.{random_base64(r, 32)}", "apikey: {}", is_held_out=True),
    Form("slack-hook",
         lambda r: f"T{random_chars(r, 10, UPPER_CHARS)}/B{random_chars(r, 10, UPPER_CHARS)}/{random_chars(r, 24)}",
         "https://hooks.slack.com/services/{}", is_held_out=True),
    Form("digitalocean", lambda r: "dop_v1_" + random_chars(r, 64, HEX_DIGITS), "doctl auth init -t {}",
         is_held_out=True),
    Form("databricks", lambda r: "dapi" + random_chars(r, 32, HEX_DIGITS), "token: {}", is_held_out=True),
    Form("github-fine", lambda r: f"github_pat_{random_chars(r, 22)}_{random_chars(r, 59)}",
         "git clone https://{}@github.com/o/r",
         is_held_out=True),
    Form("telegram", lambda r: f"{random_chars(r, 10, '123456789')}:AA{random_chars(r, 33)}",
         "https://api.telegram.org/bot{}/getMe"),
    Form("vault", lambda r: "hvs." + random_chars(r, 95), "VAULT_TOKEN={}", is_held_out=True),
    Form("generic-key", lambda r: random_chars(r, 32), 'headers = {{"X-Api-Key": "{}"}}', is_held_out=True),
    Form("client-secret", lambda r: random_chars(r, 40), 'client_secret: "{}"', is_held_out=True),
    Form("mysql", lambda r: random_chars(r, 12), "mysql --user=root --password={} shop", is_held_out=True),
    Form("redis", lambda r: random_chars(r, 24), "REDIS_URL=redis://:{}@cache:6379/0", is_held_out=True),
    Form("said", random_password, "The password is {} and the user is svc.", is_held_out=True),
    Form("yaml-secret", lambda r: random_chars(r, 20), "  smtp:\n    user: svc\n    password: {}\n", is_held_out=True),
    Form("ec-key", lambda r: private_key(r, "EC "), is_held_out=True),
    Form("openssh-key", lambda r: private_key(r, "OPENSSH "), is_held_out=True),
    Form("key-in-base64", lambda r: base64.b64encode(private_key(r).encode()).decode(), "tls.key: {}",
         is_held_out=True),
    Form("token-in-base64", lambda r: base64.b64encode(f"ghp_{random_chars(r, 36)}".encode()).decode(), "token: {}",
         is_held_out=True),
    Form("django", lambda r: random_chars(r, 50, ALNUM + "-_"), 'SECRET_KEY = "{}"', is_held_out=True),
    Form("cookie", lambda r: random_chars(r, 32, HEX_DIGITS), "Cookie: _gitlab_session={}", is_held_out=True),
    Form("netrc", random_password, "machine api.internal login deploy password {}"),
    Form("netrc-lines", random_password, "machine api.internal\n  login deploy\n  password {}\n"),
    Form("mysql-p", random_password, "mysql -h db -u root -p{} shop < dump.sql"),
    Form("mysqldump-p", random_password, "mysqldump -uroot -p'{}' shop"),
    Form("mariadb-p", random_password, "mariadb --host=db -p{} shop"),
    Form("docker-login", random_password, "docker login -u svc -p {} registry.internal"),
    Form("podman-login", random_password, "podman login registry.internal --username svc -p '{}'"),
    Form("sshpass", random_password, "sshpass -p {} ssh root@host"),
    Form("sshpass-quoted", random_password, "sshpass -p'{}' scp a host:"),
    Form("passphrase", random_password, "gpg --batch --passphrase {} -d x.gpg"),
    Form("passphrase-set", random_password, "gpg --passphrase='{}' -d x.gpg"),
    Form("openssl-pass", random_password, "openssl enc -aes-256-cbc -in a -pass pass:{}"),
    Form("openssl-passin", random_password, "openssl rsa -in key.pem -passin pass:{} -out key"),
    Form("ldapsearch", random_password, "ldapsearch -x -H ldaps://ldap -D cn=admin,dc=x -w {} -b dc=x"),
    Form("ldapmodify", random_password, "ldapmodify -D 'cn=admin,dc=x' -w '{}' -f x.ldif"),
    Form("redis-a", random_password, "redis-cli -h cache -a {} ping"),
    Form("redis-pass", random_password, "redis-cli --pass {} ping"),
    Form("net-use", random_password, r"net use Z: \\server\share {} /user:CORP\deploy"),
    Form("net-use-user", random_password, r"net use \\server\share /user:deploy {}"),
    Form("secure-string", random_password, "$p = ConvertTo-SecureString '{}' -AsPlainText -Force"),
    Form("secure-string-named", random_password, 'ConvertTo-SecureString -String "{}" -AsPlainText -Force'),
    Form("npm-auth", lambda r: in_base64(f"ci:{random_chars(r, 10)}"), "//registry.internal/:_auth={}"),
    Form("npm-auth-set", lambda r: in_base64(f"ci:{random_chars(r, 20)}"), '_auth = "{}"\nalways-auth=true'),
    Form("npm-password", lambda r: in_base64(random_chars(r, 14)), "//registry.internal/:_password={}"),
    Form("npm-uuid", random_uuid, "//registry.npmjs.org/:_authToken={}"),
    Form(
        "putty",
        key_lines,
        "Public-Lines: 1\nAAAAB3NzaC1yc2EAAAADAQAB\nPrivate-Lines: 12\n{}\nPrivate-MAC: " + "0a" * 20,
    ),
    Form("bcrypt", lambda r: "$2b$12$" + random_chars(r, 53, HASH_CHARS), "hash: {}"),
    Form("crypt-512", lambda r: f"$6${random_chars(r, 16, HASH_CHARS)}${random_chars(r, 86, HASH_CHARS)}",
         "root:{}:19000:0:99999:7:::"),
    Form("crypt-256", lambda r: f"$5$rounds=5000${random_chars(r, 16, HASH_CHARS)}${random_chars(r, 43, HASH_CHARS)}",
         "root:{}:19000:0:::"),
    Form("yescrypt", lambda r: f"$y$j9T${random_chars(r, 22, HASH_CHARS)}${random_chars(r, 43, HASH_CHARS)}",
         "root:{}:19000:0:::"),
    Form("htpasswd", lambda r: f"$apr1${random_chars(r, 8, HASH_CHARS)}${random_chars(r, 22, HASH_CHARS)}",
         "deploy:{}"),
    Form("argon2", lambda r: f"$argon2id$v=19$m=65536,t=3,p=4${random_chars(r, 22)}${random_chars(r, 43)}"),
    Form("django-hash", lambda r: f"pbkdf2_sha256$260000${random_chars(r, 22)}${in_base64(r.randbytes(32))}"),
    Form("maven", random_password, "<server><id>x</id><username>svc</username><password>{}</password></server>"),
    Form("xml-lines", random_password, "<db.password>\n  {}\n</db.password>"),
    Form("cookie-php", lambda r: random_chars(r, 26), "Cookie: lang=en; PHPSESSID={}; theme=dark"),
    Form("set-cookie", lambda r: random_chars(r, 40), "Set-Cookie: connect.sid={}; Path=/; HttpOnly"),
    Form("curl-cookie", lambda r: random_chars(r, 32), "curl --cookie 'session={}' https://x.internal"),
    Form("discord",
         lambda r: f"{in_base64('1' + random_chars(r, 17, string.digits))}.{random_chars(r, 6)}.{random_chars(r, 38)}"),
    Form("discord-old",
         lambda r: f"{in_base64('9' + random_chars(r, 17, string.digits))}.{random_chars(r, 6)}.{random_chars(r, 27)}"),
    Form("teams", lambda r: f"{random_chars(r, 32, HEX_DIGITS)}/{random_uuid(r)}",
         f"https://x.webhook.office.com/webhookb2/{SAMPLE_UUID}@{SAMPLE_UUID}/IncomingWebhook/{{}}"),
    Form("teams-workflow", lambda r: random_base64(r, 32),
         "https://prod-01.westus.logic.azure.com/workflows/01/triggers/manual/paths/invoke?sp=%2Frun&sv=1.0&sig={}"),
    Form("okta", lambda r: "00" + random_chars(r, 40, ALNUM + "-_"),
         "curl -H 'Authorization: SSWS {}' https://x.okta.com/api"),
    Form("curl-user", random_password, "curl -s -u deploy:{} https://api.internal/v1"),
    Form("key-tail", key_lines, "{}\n-----END RSA PRIVATE KEY-----"),
    Form("key-head", lambda r: "MIIEpAIBAAKCAQEA" + key_lines(r)),
    Form("key-one-line", lambda r: "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + random_chars(r, 900, ALNUM + "+/"), "KEY={}"),
    Form("openssh-head", lambda r: "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUA" + key_lines(r)),
]  # fmt: skip


def in_prompt(text: str) -> str:
    """Return a prompt that contains the text."""
    return f"Use this for the deploy, please:\n{text}\nand then run the tests"


def in_json(text: str) -> str:
    """Return a tool's input, as JSON, that writes the text to a JSON file. The text is escaped twice."""
    return json.dumps(
        {"file": "config.json", "content": f"first line\n{text}\nlast line", "n": 12}, indent=2
    )


def encode_as_json_twice(text: str) -> str:
    """Return the text in JSON that is itself a string in JSON."""
    return json.dumps({"stdout": in_json(text), "code": 0})


def with_character_codes(text: str) -> str:
    r"""Return the text in JSON with some characters as codes like ``\u0041``."""
    inner = json.dumps(text)[1:-1]
    coded, after = "", False
    for number, sign in enumerate(inner):
        coded += f"\\u{ord(sign):04x}" if sign.isalnum() and number % 7 == 3 and not after else sign
        after = sign == "\\"
    return '{"out": "' + coded + '"}'


def with_line_numbers(text: str) -> str:
    """Return the text with line numbers, as the client prints a file."""
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))


def shell_quoted(text: str) -> str:
    """Return the text in the quotes of a shell command."""
    return "ssh host 'cat > .env <<EOF\n" + text + "\nEOF'"


TEXT_WRITERS: list[Callable[[str], str]] = [
    in_prompt,
    in_json,
    encode_as_json_twice,
    with_character_codes,
    with_line_numbers,
    shell_quoted,
]


SECRET_PLACE_NAMES = (
    "prompt",
    "input",
    "result",
    "tool use result",
    "attachment",
    "tool-results file",
)


class PlantedSecret(NamedTuple):
    """A secret in the line of a transcript, or in the text of a separate file."""

    form: Form
    writer_name: str
    place_name: str
    secret: str
    raw: bytes


def assigned_forms() -> list[Form]:
    """Return a form for each rule that finds a value of a certain length after a vendor's name."""
    with open(RULES_FILE, encoding="utf-8") as stream:
        rules = json.load(stream)["assigned"]
    forms = []
    for rule in rules:
        if shape := re.match(r"(?:\(\?i\))?\(([\w-]*)\[([^\]]+)\]\{(\d+)", rule["value"]):
            letters = "".join(
                letter
                for letter in map(chr, range(33, 127))
                if re.fullmatch(f"[{shape[2]}]", letter)
            )
            make = functools.partial(_random_text_after_prefix, shape[1], int(shape[3]), letters)
            forms.append(
                Form(rule["kind"], make, f'{re.split("[|.[]", rule["words"])[0]}_token = "{{}}"')
            )
    return forms


def _random_text_after_prefix(prefix: str, length: int, letters: str, rng: random.Random) -> str:
    return prefix + random_chars(rng, length, letters)


def plant_secrets(
    lines: list[bytes],
    seed: int = 7,
    secret_count: int = 5 * len(FORMS),
    forms: Sequence[Form] = tuple(FORMS),
) -> Iterator[PlantedSecret]:
    """Yield secrets of all forms in turn, each in a copy of a real record or in a text.

    The way of writing the secret and its position in the record change each time.
    """
    rng = random.Random(seed)
    records = [
        record
        for line in lines
        if (record := json.loads(line)).get("type") in {"user", "assistant"}
    ]
    for number in range(secret_count):
        form = forms[number % len(forms)]
        write_text = TEXT_WRITERS[(number // len(forms) + number) % len(TEXT_WRITERS)]
        place = SECRET_PLACE_NAMES[(number * 5 + number // len(forms)) % len(SECRET_PLACE_NAMES)]
        secret = form.make_secret(rng)
        text = write_text(form.template.format(secret))
        raw = (
            text.encode()
            if place == "tool-results file"
            else _record_with_text(rng.choice(records), place, text, rng)
        )
        yield PlantedSecret(form, write_text.__name__, place, secret, raw)


def _record_with_text(
    record: dict[str, object], place_name: str, text: str, rng: random.Random
) -> bytes:
    """Return a copy of a record with the text in the field that ``place_name`` names."""
    made = json.loads(json.dumps(record))
    if place_name == "prompt":
        made.update(type="user", message={"role": "user", "content": text})
    elif place_name == "input":
        call = {
            "type": "tool_use",
            "id": "toolu_01AbCdEfGhIjKlMnOpQrStUv",
            "name": "Bash",
            "input": {"command": text},
        }
        made.update(type="assistant", message={"role": "assistant", "content": [call]})
    elif place_name == "result":
        answer = {
            "type": "tool_result",
            "tool_use_id": "toolu_01AbCdEfGhIjKlMnOpQrStUv",
            "content": text,
        }
        made.update(type="user", message={"role": "user", "content": [answer]})
    elif place_name == "attachment":
        made.update(
            type="attachment", attachment={"type": "file", "content": {"file": {"content": text}}}
        )
    else:
        made["toolUseResult"] = {"stdout": text, "stderr": "", "interrupted": False}
    spaced = rng.random() < 0.2
    return (
        json.dumps(
            made, ensure_ascii=rng.random() < 0.3, separators=None if spaced else (",", ":")
        ).encode()
        + b"\n"
    )
