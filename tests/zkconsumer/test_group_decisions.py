"""What a member tells of each attempt: the view it dealt from, what it wants, why it failed."""

from __future__ import annotations

from group_stage import GROUP, Stage

from rebalance_lab.history.events import Kind

IDS = f"/consumers/{GROUP}/ids"


def test_members_that_saw_the_same_list_say_so() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        await stage.join("m2")
        zxid = (await stage.zookeeper.children(IDS)).value.stat.pzxid
        first, second = (stage.events(Kind.DECIDED, actor)[-1] for actor in ("m1", "m2"))
        assert first.of("members") == second.of("members") == 2
        assert first.of("members_zxid") == second.of("members_zxid") == zxid
        assert first.of("view") == second.of("view")
        assert (first.of("wants"), second.of("wants")) == ([["t", 0], ["t", 1]], [["t", 2]])

    Stage().play(story)


def test_a_decision_names_the_list_that_it_was_made_from() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        alone = (await stage.zookeeper.children(IDS)).value.stat.pzxid
        await stage.join("m2")
        assert stage.details(Kind.DECIDED, "m1", "members") == [1, 2]
        zxids = stage.details(Kind.DECIDED, "m1", "members_zxid")
        assert int(str(zxids[0])) == alone < int(str(zxids[1]))
        assert len(set(stage.details(Kind.DECIDED, "m1", "view"))) == 2

    Stage().play(story)


def test_a_conflict_names_what_others_own() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(1)
        await stage.join("m1", rebalance_max_retries=2)
        failed = stage.events(Kind.ATTEMPT_FAILED, "m1")
        assert [(e.of("reason"), e.of("conflicts")) for e in failed] == [("conflict", [["t", 1]])] * 2
        assert stage.count(Kind.DECIDED, "m1") == 2

    Stage().play(story)


def test_an_attempt_that_breaks_before_it_dealt_has_decided_nothing() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.zookeeper.set("/brokers/ids/0", b"no broker")
        await stage.join("m1", rebalance_max_retries=1)
        (failed,) = stage.events(Kind.ATTEMPT_FAILED, "m1")
        assert (failed.of("reason"), failed.of("conflicts")) == ("error", [])
        assert stage.count(Kind.DECIDED, "m1") == 0

    Stage().play(story)


def test_an_attempt_under_shutdown_says_so() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(0)
        stage.start("m1", rebalance_max_retries=2)
        await stage.until(lambda: stage.count(Kind.ATTEMPT_FAILED, "m1") == 1, "the first attempt failed")
        stage.started["m1"].closing.raise_()
        await stage.started["m1"].task
        assert stage.details(Kind.ATTEMPT_FAILED, "m1", "reason") == ["conflict", "shutdown"]

    Stage().play(story)
