"""Addresses: which are followed, which lead into private networks, what of one is ever shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.errors import UsageError
from resume_hooks.system.urls import MAX_ADDRESS, Address, is_address, is_private, parsed

PRIVATE = (
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.0.9", "169.254.169.254", "172.16.0.1", "192.0.0.1",
    "192.0.2.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1", "2001:db8::1", "2001::1", "2002:7f00:1::", "2002:a00:1::", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "fec0::1", "ff02::1", "5f00::1",
)  # fmt: skip
PUBLIC = ("8.8.8.8", "151.101.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::")

REFUSED = {
    "ftp://example.com/x.jsonl": "Only http and https",
    "file:///etc/passwd": "Only http and https",
    "https://me:secret@example.com/x": "a user name or a password",
    "https://secret@example.com/x": "a user name or a password",
    "https://@example.com/x": "a user name or a password",
    "https:///x": "names no host",
    "https://": "names no host",
    "https://exa mple.com/": "a space",
    "https://example.com/a\tb": "a space, a backslash or a control character",
    "https://example.com/a\r\nHost: evil": "a space, a backslash or a control character",
    "https://example.com\\@evil.com/": "a backslash",
    "https://example.com:port/": "malformed",
    "https://example.com:70000/": "malformed",
    "https://[::1/": "malformed",
    "https://example.com:25/": "Port 25",
    "https://example.com:0/": "Port 0",
    "https://exa%6dple.com/": "names no host",
    "https://" + "x" * 64 + "ü.com/": "malformed",
    "https://example.com/" + "x" * MAX_ADDRESS: "characters",
}


@pytest.mark.parametrize("ip", PRIVATE)
def test_what_is_not_public(ip: str) -> None:
    """Private, loopback, link-local, shared, reserved, multicast, documentation; inside of IPv6 addresses, too."""
    assert is_private(ip)


@pytest.mark.parametrize("ip", PUBLIC)
def test_what_is_public(ip: str) -> None:
    """Addresses of single hosts that anybody can reach."""
    assert not is_private(ip)


@given(st.ip_addresses(v=4))
def test_an_address_inside_another(ip: object) -> None:
    """An IPv4 address counts the same in each of the forms that IPv6 has for it."""
    for form in (f"::ffff:{ip}", f"64:ff9b::{ip}"):
        assert is_private(form) == is_private(str(ip))


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_followed(text: str) -> None:
    """One sentence, which repeats no secret."""
    with pytest.raises(UsageError) as failed:
        parsed(text)
    assert REFUSED[text] in failed.value.message
    assert failed.value.remedy
    assert "secret" not in failed.value.message + failed.value.remedy


def test_the_parts_of_an_address() -> None:
    """Scheme, host, port, and the path with its query; a fragment is the browser's own."""
    assert parsed("HTTPS://Example.com./a/b.jsonl?key=1#top") == Address(
        "https", "example.com", 443, "/a/b.jsonl?key=1"
    )
    assert parsed("http://[2001:DB8::1]:8080") == Address("http", "2001:db8::1", 8080, "/")
    assert parsed("https://bücher.example/ä%20b?ö") == Address(
        "https", "xn--bcher-kva.example", 443, "/%C3%A4%20b?%C3%B6"
    )


def test_what_is_told_of_an_address() -> None:
    """Of a query, which may be a key to the file, only that there is one."""
    assert parsed("https://example.com/x.jsonl?X-Amz-Signature=secret").shown == "https://example.com/x.jsonl?..."
    assert parsed("http://[::1]:8080/x").shown == "http://[::1]:8080/x"


def test_a_page_about_a_file() -> None:
    """Of well-known sites the file itself is known."""
    pages = {
        "https://github.com/o/r/blob/main/a/x.jsonl": "https://github.com/o/r/raw/main/a/x.jsonl",
        "https://gist.github.com/somebody/0123abcd": "https://gist.github.com/somebody/0123abcd/raw",
        "https://gitlab.com/g/s/r/-/blob/main/x.jsonl": "https://gitlab.com/g/s/r/-/raw/main/x.jsonl",
        "https://example.com/o/r/blob/main/x.jsonl": "",
        "https://github.com/o/r/raw/main/x.jsonl": "",
    }
    for page, file in pages.items():
        assert parsed(page).file_behind == file


def test_where_a_redirect_leads() -> None:
    """To an absolute or a relative address, which is looked at like the first."""
    here = parsed("https://example.com/a/x.jsonl?key=1")
    assert here.joined("y.jsonl").shown == "https://example.com/a/y.jsonl"
    assert here.joined("//other.example/y").shown == "https://other.example/y"
    with pytest.raises(UsageError):
        here.joined("file:///etc/passwd")


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    """An address or a sentence, never anything else; and what would be sent is printable ASCII."""
    try:
        found = parsed(f"https://{text}")
    except UsageError:
        return
    sent = f"{found.host}{found.target}{found.shown}"
    assert sent.isascii()
    assert sent.isprintable()
    assert " " not in sent


def test_what_is_meant_as_an_address() -> None:
    """Anything with a scheme; paths and titles are none."""
    assert [is_address(text) for text in ("https://x", "ftp://x", "x://y")] == [True] * 3
    assert [is_address(text) for text in ("x.jsonl", "/a/b", "C:\\x", "a title: //x", "//x")] == [False] * 5
