"""Which lab, which ZooKeeper: what a history says of them."""

from __future__ import annotations

import socket
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.trials.record import PACKAGES, source_digest
from rebalance_lab.trials.stages.containers.stage import image_versions
from rebalance_lab.world.containers.engine import LAB_IMAGE, ZOOKEEPER_IMAGE
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.zookeeper_node import server_version

ROOT = Path(__file__).parents[2]


def wheel(file: Path, change: str = "") -> Path:
    """The lab's packages as a wheel has them, `change` behind one module."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("rebalance_lab-0.1.0.dist-info/METADATA", "Name: rebalance-lab")
        for package in PACKAGES:
            for module in (ROOT / package).rglob("*.py"):
                text = module.read_text() + (change if module.name == "member.py" else "")
                archive.writestr(module.relative_to(ROOT).as_posix(), text)
        archive.writestr("rebalance_lab/report/style.css", "not what members do")
    return file


def test_a_wheel_of_this_lab_is_this_lab(tmp_path: Path) -> None:
    assert source_digest(wheel(tmp_path / "same.whl")) == source_digest()


def test_another_lab_is_told_from_this_one(tmp_path: Path) -> None:
    assert source_digest(wheel(tmp_path / "other.whl", "# changed\n")) != source_digest()


def test_a_server_tells_its_version(embedded_zookeeper: EmbeddedZooKeeper) -> None:
    host, _, port = embedded_zookeeper.connect_string.rpartition(":")
    found = server_version(host, int(port))
    assert found.split(".")[0] == "3"
    assert found in embedded_zookeeper.command("srvr")


@pytest.mark.parametrize("answer", [b"srvr is not executed because it is not in the whitelist.\n", b""])
def test_a_server_that_does_not_tell(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def serve() -> None:
            connection, _ = silent.accept()
            with connection:
                connection.recv(4)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert server_version("127.0.0.1", silent.getsockname()[1]) == "not told"
        thread.join()
    assert server_version("127.0.0.1", 1) == "not told", "nobody listens"


class Images:
    """An engine, as far as it is asked."""

    def __init__(self, lab: str) -> None:
        self._labels = {LAB_IMAGE: lab, ZOOKEEPER_IMAGE: ""}

    def image(self, ours: str) -> str:
        return ours

    def image_facts(self, ours: str) -> tuple[str, str]:
        return f"sha256:{ours}", self._labels[ours]


@pytest.mark.parametrize(
    ("label", "source", "warned"),
    [
        (source_digest(), source_digest(), []),
        ("of another lab", "of another lab", ["of another l"]),
        ("", "not told", ["not told"]),
    ],
    ids=["this lab", "another lab", "no label"],
)
def test_the_lab_in_the_image_is_compared_with_this_one(
    label: str, source: str, warned: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    engine: Any = Images(label)
    found = image_versions(engine)
    assert found == {
        "image rebalance-lab/zookeeper": "sha256:rebalance-lab/zookeeper",
        "image rebalance-lab/lab": "sha256:rebalance-lab/lab",
        "lab source": source_digest(),
        "lab source in the image": source,
    }
    told = f"nodes run the lab in image {engine.image(LAB_IMAGE)} ("
    assert [each.removeprefix(told).partition(")")[0] for each in caplog.messages if each.startswith(told)] == warned
