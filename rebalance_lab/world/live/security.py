"""Authentication of a session, ACLs of the znodes that it creates, and TLS."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
from kazoo.protocol import serialization as wire
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

#: The xid of requests that say who one is, and of their answers.
XID_AUTH = -4

_request_header = wire.int_int_struct


class BadSecurity(ValueError):
    """A security file that cannot be used; the message names it and says what is wrong."""


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Paths of PEM files. `ca`: the authority that signed the server's certificate; `certificate` and `key`: the
    client's own, if the server requires one; without `key` the certificate's file must hold its key, too.
    `server_name`: the name in the server's certificate; left out, the host of the connect string."""

    ca: str
    certificate: str | None = None
    key: str | None = None
    server_name: str | None = None


class Security(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """`digest`: user:password, with which a session authenticates. `acl`: of the znodes that it creates. `open`: all
    sessions may do everything, as with Kafka 0.8. `creator`: only the user who created them. `creator-readable`: that,
    and all sessions may read them."""

    digest: str | None = None
    acl: Literal["open", "creator", "creator-readable"] = "open"
    tls: Tls | None = None

    @property
    def acls(self) -> list[Any]:
        """For each znode that is created."""
        choices: dict[str, list[Any]] = {
            "open": OPEN_ACL_UNSAFE,
            "creator": CREATOR_ALL_ACL,
            "creator-readable": CREATOR_ALL_ACL + READ_ACL_UNSAFE,
        }
        return choices[self.acl]

    @property
    def greeting(self) -> bytes:
        """The frame sent on each new connection after the connect request; empty without a digest."""
        if self.digest is None:
            return b""
        body = _request_header.pack(XID_AUTH, wire.Auth.type) + wire.Auth(0, "digest", self.digest).serialize()
        return bytes(wire.int_struct.pack(len(body)) + body)

    @cached_property
    def context(self) -> ssl.SSLContext | None:
        """For connections with TLS; None without. Raises OSError, which names the path."""
        if self.tls is None:
            return None
        with _told("ca", self.tls.ca):
            context = ssl.create_default_context(cafile=self.tls.ca)
        if self.tls.certificate is not None:
            key = "; without tls.key it must hold its key" if self.tls.key is None else f", with tls.key {self.tls.key}"
            with _told("certificate", self.tls.certificate, key):
                context.load_cert_chain(self.tls.certificate, self.tls.key)
        return context

    @property
    def server_name(self) -> str | None:
        """What the server's certificate must name, if not its host."""
        return None if self.tls is None else self.tls.server_name


#: As with Kafka 0.8: no authentication, open ACLs, no TLS.
NO_SECURITY = Security()


def read_security(file: Path) -> Security:
    """A Security as a TOML file; paths in it are relative to it. Raises BadSecurity."""
    try:
        found = msgspec.toml.decode(file.read_bytes(), type=Security)
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise BadSecurity(f"{file}: {error}") from error
    if found.tls is not None:
        paths = {name: str(file.absolute().parent / path) for name, path in _paths(found.tls)}
        found = msgspec.structs.replace(found, tls=msgspec.structs.replace(found.tls, **paths))
    try:
        _check(found)
    except (OSError, BadSecurity) as wrong:
        raise BadSecurity(f"{file}: {wrong}") from wrong
    return found


def _check(security: Security) -> None:
    """What can be said before anybody connects. Raises BadSecurity, OSError."""
    if security.digest is not None and ":" not in security.digest:
        raise BadSecurity('write digest = "user:password"')
    tls = security.tls
    if tls is not None and tls.key is not None and tls.certificate is None:
        raise BadSecurity("tls.key needs tls.certificate, which it is the key of")
    if security.acl != "open" and security.digest is None and (tls is None or tls.certificate is None):
        raise BadSecurity(f"acl = {security.acl!r} needs a digest, or a certificate: nobody would own the znodes")
    if tls is not None:
        for name, path in _paths(tls):
            with _told(name, path):
                open(path, "rb").close()
        _ = security.context  # what is not a certificate, or not its key, is found out now


def _paths(tls: Tls) -> list[tuple[str, str]]:
    """Its fields that name files, and the files."""
    fields = {"ca": tls.ca, "certificate": tls.certificate, "key": tls.key}
    return [(name, path) for name, path in fields.items() if path is not None]


@contextlib.contextmanager
def _told(field: str, path: str, more: str = "") -> Iterator[None]:
    """Have an OSError (ssl.SSLError is one) name the field and its file."""
    try:
        yield
    except OSError as error:
        raise OSError(f"tls.{field} {path}: {error.strerror or error}{more}") from error
