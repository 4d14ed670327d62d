"""Security files, and what a session says of itself on the wire. What servers make of it:
tests/world/containers/test_secure_ensemble.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from rebalance_lab.world.live.security import NO_SECURITY, BadSecurity, Security, read_security


def written(folder: Path, text: str) -> Path:
    file = folder / "security.toml"
    file.write_text(text)
    return file


def test_nobody_in_particular_says_nothing_and_leaves_all_open() -> None:
    assert (NO_SECURITY.greeting, NO_SECURITY.context, NO_SECURITY.acls) == (b"", None, OPEN_ACL_UNSAFE)


def test_the_greeting_is_an_auth_request() -> None:
    """FakeXid -4, opcode 100, type 0, scheme, credential (AuthPacket of ZooKeeper 3.4 to 3.9)."""
    greeting = Security(digest="a:b").greeting
    assert greeting == (
        b"\x00\x00\x00\x1d\xff\xff\xff\xfc\x00\x00\x00\x64\x00\x00\x00\x00\x00\x00\x00\x06digest\x00\x00\x00\x03a:b"
    )


def test_acls_by_their_names() -> None:
    assert Security(digest="a:b", acl="creator").acls == CREATOR_ALL_ACL
    assert Security(digest="a:b", acl="creator-readable").acls == CREATOR_ALL_ACL + READ_ACL_UNSAFE


def test_a_file_is_read(tmp_path: Path) -> None:
    assert read_security(written(tmp_path, 'digest = "a:b"\nacl = "creator"\n')) == Security("a:b", "creator")
    assert read_security(written(tmp_path, "")) == NO_SECURITY


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('digest = "no password"', 'write digest = "user:password"'),
        ('acl = "creator"', "needs a digest, or a certificate"),
        ('acl = "world"', "Invalid enum value 'world'"),
        ('user = "a"', "unknown field `user`"),
        ("digest", "security.toml"),
        ('acl = "creator"\n[tls]\nca = "ca.pem"', "needs a digest, or a certificate"),
        ('[tls]\nca = "ca.pem"\nkey = "client.key"', "tls.key needs tls.certificate"),
        ("[tls]", "missing required field `ca`"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(BadSecurity) as caught:
        read_security(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert complaint in str(caught.value)


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem with its key in ca.key; both.pem holds both; other.key is of none."""
    folder = tmp_path_factory.mktemp("pem")
    for name in ("ca", "other"):
        made = ["-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem"]
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", *made]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "ca.pem").read_text() + (folder / "ca.key").read_text())
    (folder / "words.pem").write_text("no certificate")
    return folder


@pytest.mark.parametrize(
    "tls",
    ['ca = "ca.pem"\ncertificate = "both.pem"', 'ca = "ca.pem"\ncertificate = "ca.pem"\nkey = "ca.key"'],
    ids=["its key in its file", "its key beside it"],
)
def test_a_certificate_is_an_identity(pem: Path, tls: str) -> None:
    found = read_security(written(pem, f'acl = "creator"\n[tls]\n{tls}\n'))
    assert found.context is not None
    assert found.acls == CREATOR_ALL_ACL


@pytest.mark.parametrize(
    ("tls", "field", "complaint"),
    [
        ('ca = "none.pem"', "ca {}/none.pem", "No such file or directory"),
        ('ca = "words.pem"', "ca {}/words.pem", "no certificate or crl found"),
        ('ca = "."', "ca {}", "Is a directory"),
        ('ca = "ca.pem"\ncertificate = "none.pem"', "certificate {}/none.pem", "No such file or directory"),
        ('ca = "ca.pem"\ncertificate = "ca.pem"', "certificate {}/ca.pem", "without tls.key it must hold its key"),
        ('ca = "ca.pem"\ncertificate = "ca.pem"\nkey = "none.key"', "key {}/none.key", "No such file or directory"),
        (
            'ca = "ca.pem"\ncertificate = "ca.pem"\nkey = "other.key"',
            "certificate {}/ca.pem",
            "with tls.key {}/other.key",
        ),
    ],
)
def test_a_file_of_tls_that_cannot_be_used_is_named(pem: Path, tls: str, field: str, complaint: str) -> None:
    file = written(pem, f"[tls]\n{tls}\n")
    with pytest.raises(BadSecurity) as caught:
        read_security(file)
    assert str(caught.value).startswith(f"{file}: tls.{field.format(pem)}: ")
    assert complaint.format(pem) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSecurity, match="No such file"):
        read_security(tmp_path / "none.toml")
