"""The report's parts, one by one: story, bands, colours, words, and which trials are chosen."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import msgspec
import pytest
from page_tree import Tree
from zombie_story import Case, analysed, case_with_sister, trial_of, verdict, zombie_case

from rebalance_lab.analysis.results import Analysis
from rebalance_lab.checks import CHECKS
from rebalance_lab.checks.model import TOGETHER
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.report.bands import Scale, bands_of
from rebalance_lab.report.gantt import draw
from rebalance_lab.report.glossary import words_of
from rebalance_lab.report.narrator import narrator_of
from rebalance_lab.report.page import render
from rebalance_lab.report.palette import paint
from rebalance_lab.report.scene import Scene, build_scene
from rebalance_lab.report.selection import choose, shown_trials
from rebalance_lab.report.spans import Row
from rebalance_lab.report.text import coded, count, listed, moment, partition_ranges, partitions_named, seconds
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate


def scene_of(case: Case, name: str = "zombie-s7") -> Scene:
    return build_scene(case.histories[name], case.analysis.intervals)


def changed(keep: object, **details: object) -> Case:
    """The zombie's case without the events that `keep` refuses; `details` go into FAULT_BEGAN's."""
    histories = {}
    for name, history in zombie_case().histories.items():
        events = []
        for event in history.events:
            if not keep(event):  # type: ignore[operator]
                continue
            began = event.kind is Kind.FAULT_BEGAN
            events.append(
                msgspec.structs.replace(event, detail={**(event.detail or {}), **details}) if began else event
            )
        histories[name] = History(history.trial, tuple(events))
    return Case(analysed(histories, zombie_case().analysis.verdicts), histories)


#: Of a kind that no card shows.
ODD = Event("m1", 0, 0, Layer.OP, Kind.TRIAL_BEGAN)


class TestStory:
    def test_of_a_zombie(self) -> None:
        assert narrator_of("zk").tell(scene_of(zombie_case())) == (
            "m1, m2 and m3 share 6 partitions on a real ZooKeeper; "
            "at 3.00 s m1, owner of t1/0–1, is paused for 5.00 s.",
            "ZooKeeper hears nothing more from m1 and closes its session after 2.50 s; "
            "its registration and 2 owner znodes vanish with it.",
            "By 5.59 s m2 has taken t1/0–1.",
            "m1 and m2 both believe they own t1/0–1 for up to 2.76 s; "
            "after m1 wakes at 8.00 s, both work on t1/0–1 for up to 0.40 s.",
            "m1 learns at 8.35 s that its session is gone, and gives up its partitions; "
            "the group is at rest again at 10.80 s.",
        )

    def test_of_a_control(self) -> None:
        assert narrator_of("zk").tell(scene_of(zombie_case(), "zombie-s7-control")) == (
            "m1, m2 and m3 share 6 partitions on a real ZooKeeper; nothing is done to them.",
            "Two members never have the same partition at the same time; every partition has an owner all the time.",
            "The group is at rest at 10.80 s.",
        )

    def test_a_pause_without_proof_proves_nothing(self) -> None:
        told = narrator_of("zk").tell(scene_of(changed(lambda event: event.kind is not Kind.FAULT_BIT)))
        assert told[1] == "Nothing shows that the pause took effect, so this trial proves nothing."
        assert len(told) <= 5

    def test_nor_does_one_that_did_not_outlast_its_session(self) -> None:
        case = changed(lambda event: event.kind is not Kind.SESSION_CLOSED or event.at_us > 1_010_000_000)
        assert "so this trial proves nothing" in narrator_of("zk").tell(scene_of(case))[1]
        (band, *_), _ = bands_of(scene_of(case), Scale(0, 11_200_000, 0, 1000), "x")
        assert (band.kind, band.label) == ("unproven", "m1 paused 5.00 s, not proven")

    def test_a_short_pause_is_called_short(self) -> None:
        case = changed(
            lambda event: event.kind is not Kind.SESSION_CLOSED or event.at_us > 1_010_000_000,
            must_outlast_session=False,
        )
        assert narrator_of("zk").tell(scene_of(case))[1] == (
            "The pause is shorter than the session: ZooKeeper keeps m1's session and znodes."
        )

    def test_missed_rest_is_said(self) -> None:
        case = changed(lambda event: event.kind is not Kind.REST_REACHED)
        assert narrator_of("zk").tell(scene_of(case))[-1] == "The history does not show the group at rest."
        history = case.histories["zombie-s7"]
        last = history.events[-1]
        missed = msgspec.structs.replace(last, n=99, kind=Kind.REST_MISSED, detail={"why": "m1: it rebalances"})
        scene = build_scene(History(history.trial, (*history.events, missed)), case.analysis.intervals)
        assert narrator_of("zk").tell(scene)[-1] == "The group does not come to rest: m1: it rebalances."

    def test_rest_of_the_same_instant_but_before_the_fault_does_not_count(self) -> None:
        """Virtual time stands still between them; only the runner's own count orders them."""
        history, _ = simulate(make_plan("crash", seed=3))
        case = Case(analysed({"a": history}, ()), {"a": history})
        scene = build_scene(history, case.analysis.intervals)
        told = narrator_of("zk").tell(scene)
        (fault,) = scene.faults
        assert "is killed" in told[0]
        rest = next(event for event in history.events if event.kind is Kind.REST_REACHED and event.id > fault.event)
        assert scene.since_start(rest) > fault.began_us
        assert told[-1] == f"The group is at rest again at {moment(scene.since_start(rest))}."


@pytest.mark.parametrize("seed", range(5))
def test_the_picture_agrees_with_the_checks(seed: int) -> None:
    """Of a simulated zombie: the longest overlap drawn is the one the check measured."""
    history, _ = simulate(make_plan("zombie", seed=seed))
    case = Case(analysed({history.trial.id: history}, ()), {history.trial.id: history})
    scene = build_scene(history, case.analysis.intervals)
    measured = {outcome.check: outcome.longest_us for outcome in case.analysis.outcomes}
    drawn = {layer: scene.longest(layer) for layer in (Layer.BELIEF, Layer.EFFECT)}
    assert drawn[Layer.BELIEF] is not None
    assert drawn[Layer.BELIEF].length_us == measured["belief_overlap"] > 1_000_000
    assert drawn[Layer.EFFECT] is not None
    assert drawn[Layer.EFFECT].length_us == measured["effect_overlap"]
    page = Tree(render(case.analysis, case.histories)).root
    checks = [card.attributes["data-check"] for card in page.all("section", class_="card")]
    assert checks == ["belief_overlap", "effect_overlap"]
    assert len(page.all("div", class_="jump")) == 2


class TestChoice:
    def test_witness_control_and_sister(self) -> None:
        case = zombie_case()
        near = trial_of("sim-7", "t1", 6, world="simulated")
        far = msgspec.structs.replace(near, id="a-sim-8", seed=8)
        other = msgspec.structs.replace(near, id="sim-control", control=True)
        planted = msgspec.structs.replace(near, id="a-planted", control=True, plant="two-owners")
        analysis = replace(case.analysis, trials=(planted, other, far, near, *case.analysis.trials))
        (choice,) = choose(analysis)
        assert choice.control is not None
        assert choice.control.id == "zombie-s7-control"
        assert choice.sister is not None
        assert choice.sister.id == "sim-7"
        assert [each.claim for each in choice.verdicts] == ["Z10"]
        assert shown_trials(analysis) == ("zombie-s7", "zombie-s7-control", "sim-7")

    def test_two_claims_on_one_witness_are_shown_once(self) -> None:
        case = zombie_case()
        verdicts = (verdict("Z10", "as expected", witness="zombie-s7"), verdict("Z1", "surprise", witness="zombie-s7"))
        (choice,) = choose(replace(case.analysis, verdicts=verdicts))
        assert [each.claim for each in choice.verdicts] == ["Z1", "Z10"]

    def test_without_a_witness_the_first_that_violates_is_shown(self) -> None:
        case = zombie_case()
        trials = tuple(reversed(case.analysis.trials))
        analysis = replace(case.analysis, verdicts=(), trials=trials)
        assert choose(analysis)[0].witness.id == "zombie-s7"
        assert choose(replace(analysis, outcomes=()))[0].witness.id == "zombie-s7"
        assert choose(replace(analysis, trials=trials[:1]))[0].witness.id == "zombie-s7-control"
        assert choose(Analysis((), (), (), ())) == ()

    def test_the_sisters_cards_are_folded(self) -> None:
        case = case_with_sister()
        page = Tree(render(case.analysis, case.histories)).root
        (shown,) = page.all("article", id="g1-sister")
        assert shown.all("h3")[0].text.startswith("The same on a simulated ZooKeeper")
        assert [card.above("details").attributes["class"] for card in shown.all("section", class_="card")] == [
            "more"
        ] * 2
        assert shown.all("pre")[0].text == "rebalance-lab replay sim-7"


class TestBands:
    def test_a_session_closed_at_the_very_end_is_no_news(self) -> None:
        """The server's clock may place it a little before the runner's closing phase."""
        scene = scene_of(zombie_case())
        (early, *rest) = scene.session_ends
        late = replace(early, at_us=scene.closing_us - 1_500)
        bands, _ = bands_of(replace(scene, session_ends=(early, late, *rest)), Scale(0, scene.end_us, 0, 1000), "x")
        assert [band.kind for band in bands] == ["fault", "session", "closing"]

    def test_labels_never_lie_on_each_other_nor_outside(self) -> None:
        scene = scene_of(zombie_case())
        (fault,) = scene.faults
        crowd = tuple(replace(fault, began_us=n * 900_000, ended_us=n * 900_000 + 400_000) for n in range(12))
        scale = Scale(0, scene.end_us, 100, 1000)
        bands, lines = bands_of(replace(scene, faults=crowd), scale, "x")
        assert len(bands) == 14
        assert 1 < lines < 6
        for one, other in combinations(bands, 2):
            if one.line == other.line:
                first, second = sorted((one, other), key=lambda band: band.label_x)
                assert first.label_x + 6 * len(first.label) <= second.label_x
        assert all(band.label_x >= 100 and band.label_x + 6 * len(band.label) <= 1100 for band in bands)


class TestDrawing:
    @pytest.mark.parametrize("until_us", [1, 999, 70_000, 1_500_000, 11_200_000, 600_000_000, 86_400_000_000])
    def test_ticks_are_few_and_in_the_plot(self, until_us: int) -> None:
        gantt = draw(scene_of(zombie_case()), "x", until_us=until_us)
        assert 2 <= len(gantt.ticks) <= 17
        assert gantt.ticks[0].label == "0"
        assert all(gantt.scale.left <= tick.x <= gantt.scale.left + gantt.scale.width + 0.01 for tick in gantt.ticks)

    def test_long_topics_are_cut_but_partitions_stay(self) -> None:
        gantt = draw(scene_of(zombie_case(topic="orders-of-the-whole-world", partitions=12)), "x")
        assert [line.label for line in gantt.lines][-1] == "orders-of…/11"
        assert all(len(line.label) <= 13 for line in gantt.lines)

    def test_groups_do_not_overlap_each_other(self) -> None:
        case = zombie_case()
        rival = tuple(replace(each, group="g2", member=f"rival-{each.member}") for each in case.analysis.intervals)
        scene = build_scene(case.histories["zombie-s7-control"], (*case.analysis.intervals, *rival))
        assert len(scene.rows) == 12
        assert scene.overlaps == ()

    def test_who_never_introduced_itself_keeps_its_id(self) -> None:
        scene = scene_of(changed(lambda event: event.kind is not Kind.MEMBER_STARTED or event.actor != "m3"))
        assert [person.name for person in scene.people] == ["m1", "m2", "g1_host-m3-1700000000000-m3m3m3m3"]


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class TestPalette:
    def test_eighteen_members_differ_and_then_they_repeat(self) -> None:
        paints = [paint(index).fill for index in range(18)]
        assert len(set(paints)) == 18
        assert paint(18) == paint(0)

    @pytest.mark.parametrize("index", range(6))
    def test_names_can_be_read_on_every_colour(self, index: int) -> None:
        lighter, darker = sorted((luminance(paint(index).base), luminance(paint(index).ink)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5


class TestWords:
    def test_every_check_is_explained(self) -> None:
        assert [name for name, check in CHECKS.items() if check.together in ("", TOGETHER)] == []

    def test_a_check_of_another_version_still_has_words(self) -> None:
        case = zombie_case()
        outcomes = tuple(replace(each, check="time_travel") for each in case.analysis.outcomes[:1])
        page = Tree(render(replace(case.analysis, outcomes=outcomes), case.histories)).root
        (card,) = page.all("section", class_="card")
        assert card.all("h4")[0].text == "Time travel"
        assert "comes from another version" in card.text

    def test_the_zombies_events_all_have_reasons(self) -> None:
        history = zombie_case().histories["zombie-s7"]
        witnessed = {each for outcome in zombie_case().analysis.outcomes for each in outcome.witness}
        shown = [event for event in history.events if event.id in witnessed or event.layer is Layer.FAULT]
        assert len(shown) > 5
        assert all(words_of("zk").alone(event) != words_of("zk").alone(ODD) for event in shown)

    @pytest.mark.parametrize(
        ("length_us", "text"),
        [(0, "0 s"), (1, "1 µs"), (999, "999 µs"), (1000, "1 ms"), (99_400, "99 ms"), (100_000, "0.10 s"),
         (2_760_000, "2.76 s"), (61_000_000, "61.00 s")],
    )  # fmt: skip
    def test_seconds(self, length_us: int, text: str) -> None:
        assert seconds(length_us) == text

    def test_lists_and_counts(self) -> None:
        assert listed([]) == "none"
        assert listed(["m1"]) == "m1"
        assert listed(["m1", "m2", "m3"]) == "m1, m2 and m3"
        assert listed([f"m{n}" for n in range(1, 41)]) == "m1, m2, m3, m4, m5, … (40 in all)"
        assert count(1, "partition") == "1 partition"
        assert count(1000, "trial") == "1,000 trials"

    def test_partitions(self) -> None:
        assert partition_ranges([5, 0, 1, 2]) == "0–2, 5"
        rows = [Row("g", "b", 1), Row("g", "a", 0), Row("g", "a", 1)]
        assert partitions_named(rows) == "a/0–1 and b/1"

    def test_code_in_texts(self) -> None:
        assert coded("under `/ids`, `<b>` & more") == "under <code>/ids</code>, <code>&lt;b&gt;</code> &amp; more"
        assert coded("one ` alone <b>") == "one ` alone &lt;b&gt;"
