"""A controller that deletes a topic is killed before each of its operations. Does its successor finish the deletion?

Runs a simulated trial for each operation and each form of the controller. The histories say when the controller was
killed, when another was elected, when the dead broker was back, and when the request was done. Writes kills.svg.
"""

import altair
import pandas

import rebalance_lab

REQUEST, FORMS = "/admin/delete_topics/t2", ["0.8.2", "1.1", "2.1"]
#: What happens until the end of the bar; the trial ends after the last.
PHASES = {"killed": "the controller that is killed", "elected": "no controller", "done": "its successor"}
LEFT = "the request stays for good"
END_S = 4


def row_of(result: rebalance_lab.Result) -> dict[str, object] | None:
    """What a trial shows, in seconds since the request; None if the controller was done before the operation."""
    events = result.history.events
    halt = next((each for each in events if each.of("event") == "halts"), None)
    if halt is None:
        return None

    def when(kind: str, name: str, value: str, since_us: int) -> float | None:
        """When the first such event came; None if none did."""
        times = (each.at_us for each in events if each.kind == kind and each.of(name) == value)
        return next(((at_us - asked_us) / 1e6 for at_us in times if at_us >= since_us), None)

    asked_us = next(each.at_us for each in events if each.kind == "created" and each.of("path") == REQUEST)
    return {
        "form": result.trial.parameters["form"],
        "number": halt.of("number"),
        "operation": f"{halt.of('number')}  {str(halt.of('message')).removeprefix('multi: check /controller_epoch, ')}",
        "killed": when("fault-bit", "fault", "kill", halt.at_us),
        "elected": when("created", "path", "/controller", halt.at_us),
        "back": when("fault-bit", "fault", "restart", halt.at_us),
        "done": when("deleted", "path", REQUEST, asked_us),
    }


# No form needs more than 32 operations, so the last of these trials show nothing.
results = rebalance_lab.sweep("duties", seeds=1, duty="delete-topic", form=FORMS, kill_at=range(1, 36))
kills = pandas.DataFrame([row for row in map(row_of, results) if row is not None])
print(f"{'form':>6} {'operations':>11} {'without an end':>15}   killed before")
for form, group in kills.groupby("form"):
    stays = group[group["done"].isna()]["number"]
    where = f"{stays.min()} to {stays.max()}" if len(stays) else "-"
    print(f"{form:>6} {len(group):11} {len(stays):15}   {where}")

# A bar for each phase, from the end of the one before it.
bars, kills["begin"] = [], 0.0
for end, phase in PHASES.items():
    bar = kills.assign(end=kills[end].fillna(END_S), phase=phase)
    bar.loc[bar[end].isna(), "phase"] = LEFT
    bars.append(bar[bar["end"] > bar["begin"]])
    kills["begin"] = bar["end"]
base = altair.Chart(pandas.concat(bars)).encode(
    altair.Y("operation:N", sort=altair.SortField("number"), title=None, axis=altair.Axis(labelLimit=270)),
)
spans = base.mark_bar(height=9).encode(
    altair.X("begin:Q", title="seconds since the request", scale=altair.Scale(domain=[0, END_S])),
    altair.X2("end:Q"),
    altair.Color("phase:N", title=None, sort=[*PHASES.values(), LEFT], legend=altair.Legend(orient="bottom")).scale(
        range=["#0072b2", "#d0d5da", "#56b4e9", "#d3143a"], domain=[*PHASES.values(), LEFT]
    ),
)
back = base.mark_point(shape="triangle-right", filled=True, color="black", size=30).encode(altair.X("back:Q"))
altair.hconcat(
    *(
        altair.layer(spans, back)
        .transform_filter(altair.datum.form == form)
        .properties(width=200, height=altair.Step(13), title=f"{form}: killed before operation")
        for form in FORMS
    )
).save("kills.svg")
print("\nwritten: kills.svg (a triangle: the dead broker is back)")
