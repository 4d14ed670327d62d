"""Certificates for one run, made with openssl: an authority, a server, a client."""

from __future__ import annotations

import subprocess
from pathlib import Path

#: What the server's certificate names.
SERVER_NAME = "zookeeper.test"


def make(folder: Path) -> None:
    """ca.pem, server.pem (key and certificate, as ZooKeeper wants it), client.pem and client.key; and
    other-ca.pem, which signed none of them."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # the server runs as a user of its own
    for name in ("ca", "other-ca"):
        authority = ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}"]
        _openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *authority)
    for name, subject, names in (("server", SERVER_NAME, f"DNS:{SERVER_NAME}"), ("client", "member", "DNS:member")):
        _openssl(
            folder,
            *("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr"),
            *("-subj", f"/CN={subject}"),
        )
        (folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        _openssl(
            folder,
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt"),
        )
    server = folder / "server.pem"
    server.write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())
    (folder / "client.crt").rename(folder / "client.pem")
    for file in folder.iterdir():
        file.chmod(0o644)


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, text=True)
