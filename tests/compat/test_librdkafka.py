"""librdkafka's own tests, unmodified, on brokers of ours. `librdkafka_tests.txt` says which pass, and why others do
not."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from cluster_process import ClusterProcess
from expected import FILE, NOT_RUN, Expected, Verdict, expected, scenarios

pytestmark = [pytest.mark.compat, pytest.mark.timeout(900)]

EXPECTED = expected(FILE.read_text())
RUN = [each for each in EXPECTED.values() if each.verdict not in NOT_RUN]

#: The settings of the brokers by scenario, as in librdkafka's tests/scenarios.
_COMMON = ("num.partitions=4", "default.replication.factor=3")
SCENARIOS = {"default": _COMMON, "noautocreate": (*_COMMON, "auto.create.topics.enable=false")}
BROKERS = 3

#: Most tests wait most of the time.
AT_ONCE = 8

#: librdkafka has limits of its own, and three times as long ones where a test is to pass (CI=1).
LIMIT_S = 240
#: Where it is not to pass, it often waits for what does not come.
LIMIT_TO_FAIL_S = 40

#: librdkafka's tests have limits of time and races of their own, which a busy machine shows. In 0086 the client sends
#: one message instead of ten if its threads run in another order; this was seen in one of seven runs.
ATTEMPTS = 3

_COLOUR = re.compile(r"\x1b\[[0-9;]*m|\x1b\(B")
_STATE = re.compile(r"^\|\s*(\w+)\s*\|\s*([A-Z]+)\s*\|", re.MULTILINE)


class Suite:
    """The given tests, begun at once, with their outcomes as they come. Those that are to pass go first."""

    def __init__(self, runner: Path, names: Collection[str], folder: Path, stack: ExitStack) -> None:
        self._runner = runner
        self._folder = folder
        (folder / "src").symlink_to(runner.parents[1] / "src")  # a test reads ../src/statistics_schema.json
        self._scenarios = scenarios((runner.parent / "test.c").read_text())
        self._brokers = {
            name: stack.enter_context(
                ClusterProcess(folder / name, *(f"--set={each}" for each in settings), brokers=BROKERS)
            )
            for name, settings in SCENARIOS.items()
        }
        self.again: list[str] = []  # once for each attempt after the first
        self._outcomes: dict[tuple[str, str], Future[str]] = {}
        pool = ThreadPoolExecutor(AT_ONCE)
        stack.callback(pool.shutdown, cancel_futures=True)
        for each in sorted((EXPECTED[name] for name in names), key=lambda each: each.verdict is not Verdict.PASS):
            if self._key(each) not in self._outcomes:
                self._outcomes[self._key(each)] = pool.submit(self._run, each)

    def outcome(self, test: Expected) -> str:
        """PASSED, or what else became of it; the end of its log, if it died."""
        output = self._outcomes[self._key(test)].result()
        return dict(_STATE.findall(output)).get(test.name) or output[-4000:]

    def _key(self, test: Expected) -> tuple[str, str]:
        return test.number, self._scenarios[test.name]

    def _run(self, test: Expected) -> str:
        """Its log; the last one, if it is to pass and was tried again."""
        log = self._attempt(test, 1)
        for attempt in range(2, ATTEMPTS + 1):
            if test.verdict is not Verdict.PASS or dict(_STATE.findall(log)).get(test.name) == "PASSED":
                break
            self.again.append(test.name)
            log = self._attempt(test, attempt)
        return log

    def _attempt(self, test: Expected, attempt: int) -> str:
        """Its log, in a process and a folder of its own: a test that fails ends its process."""
        number, scenario = self._key(test)
        folder = self._folder / f"{scenario}-{number}-{attempt}"
        folder.mkdir()
        settings = folder / "test.conf"
        settings.write_text(f"metadata.broker.list={self._brokers[scenario].bootstrap}\ntest.topic.random=true\n")
        environment = {"TESTS": number, "TEST_KAFKA_VERSION": "3.9.1", "RDKAFKA_TEST_CONF": str(settings)}
        is_to_pass = test.verdict is Verdict.PASS
        log = folder / "log"
        with log.open("wb") as out:
            try:
                subprocess.run(
                    [self._runner, "-L", "-p1", "-s", scenario],
                    cwd=folder,
                    env={**os.environ, **environment, **({"CI": "1"} if is_to_pass else {})},
                    check=False,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    timeout=LIMIT_S if is_to_pass else LIMIT_TO_FAIL_S,
                )
            except subprocess.TimeoutExpired as error:
                out.write(f"\n{error}\n".encode())
        return _COLOUR.sub("", log.read_text(errors="replace"))


@pytest.fixture(scope="module")
def suite(runner: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    selected = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    names = [each["name"] for each in selected if each.get("name") in EXPECTED]
    with ExitStack() as stack:
        begun = Suite(runner, names, tmp_path_factory.mktemp("compat"), stack)
        yield begun
        if begun.again:
            with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
                print(f"\ntried again: {', '.join(begun.again)}")


def check(outcome: str) -> None:
    if outcome != "PASSED":
        pytest.fail(outcome, pytrace=False)


def test_every_test_has_a_line(runner: Path) -> None:
    assert list(EXPECTED) == list(scenarios((runner.parent / "test.c").read_text()))


@pytest.mark.parametrize("name", [each.name for each in RUN if each.verdict is Verdict.PASS])
def test_passes(suite: Suite, name: str) -> None:
    check(suite.outcome(EXPECTED[name]))


@pytest.mark.parametrize("name", [each.name for each in RUN if each.verdict is not Verdict.PASS])
def test_does_not_pass_yet(suite: Suite, name: str, request: pytest.FixtureRequest) -> None:
    """Reported as XPASS, if it does: its line can become `pass`."""
    test = EXPECTED[name]
    request.applymarker(pytest.mark.xfail(reason=f"{test.verdict.value}: {test.why}", strict=False))
    check(suite.outcome(test))
