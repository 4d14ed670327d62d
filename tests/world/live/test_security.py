"""Security files, and what a session says of itself on the wire. What servers make of it:
tests/world/containers/test_secure_ensemble.py."""

from __future__ import annotations

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
        ('[tls]\nca = "none.pem"', "No such file or directory"),
        ("[tls]", "missing required field `ca`"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(BadSecurity) as caught:
        read_security(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert complaint in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSecurity, match="No such file"):
        read_security(tmp_path / "none.toml")
