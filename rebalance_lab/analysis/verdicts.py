"""From the counts of a reading to its verdict, status, witness and reason, in plain Python.

A *counted reading* is a row of READINGS with `roles`: for each role (shows, denies, undecided; of
controls clean, dirty, unclear) and world (live, simulated) that any trial has, how many have it,
the first of them, the values that the reading's measures have in each, and the repeats that were not
counted; and of a trend its `fits` and whether
they agree (`agrees_live`) or disagree (`disagrees_live`). Here they become columns of their own:
`shows_live`, `shows_live_first`, …, `repeats_live`. The rules are those of `ledger`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from statistics import NormalDist, median
from typing import Any

from rebalance_lab.analysis.ledger import DECIDED_PERCENT, Expected, Judgement, Quantifier, Status
from rebalance_lab.history.durations import seconds

Row = dict[str, Any]

WORLDS = ("live", "simulated")

_EARNEST = ("shows", "denies", "undecided")
_ROLES = (*_EARNEST, "clean", "dirty", "unclear")

#: The quantile for a two-sided interval of 95 %.
_Z = NormalDist().inv_cdf(0.975)


def wilson(shown: int, decided: int) -> tuple[float, float] | None:
    """Wilson's 95 % interval of a share; None where nothing was decided."""
    if decided == 0:
        return None
    middle = (shown + _Z * _Z / 2) / (decided + _Z * _Z)
    half = _Z / (decided + _Z * _Z) * sqrt(shown * (decided - shown) / decided + _Z * _Z / 4)
    return max(0.0, middle - half), min(1.0, middle + half)  # against rounding errors


def verdict_row(counted: Row) -> Row:
    """A counted reading with all columns of VERDICTS."""
    row = counted | _spread(counted["roles"] or []) | {"fits": counted["fits"] or []}
    verdict = _verdict(row)
    row |= {world: _decided(row, world) for world in WORLDS}
    row |= {"verdict": verdict, "status": _status(row["expected"], verdict)}
    row |= {"witness": _witness(row), "examples": _examples(row), "measured": _measured(row)}
    return row | {"why": why(row), "frequencies": [_frequency(row, world) for world in WORLDS]}


def _status(expected: str, verdict: Judgement) -> Status:
    if verdict in (Judgement.UNKNOWN, Judgement.NOT_RUN):
        return Status(verdict)
    if verdict != expected:
        return Status.SURPRISE
    return Status.DOES_NOT_APPLY if verdict is Judgement.DOES_NOT_APPLY else Status.AS_EXPECTED


def _spread(roles: list[Row]) -> Row:
    """Counts, first trials and repeats, each by its name."""
    found = {(each["role"], each["world"]): each for each in roles}
    row: Row = {}
    for world in WORLDS:
        for role in _ROLES:
            each = found.get((role, world), {"trials": 0, "first": None, "values": []})
            row |= {f"{role}_{world}": each["trials"], f"{role}_{world}_first": each["first"]}
            row[f"{role}_{world}_values"] = each["values"]
        row[f"repeats_{world}"] = sum(found[role, world]["repeats"] for role in _EARNEST if (role, world) in found)
    return row


def _exists(row: Row) -> bool:
    return bool(row["quantifier"] == Quantifier.EXISTS)


def _of_premise(row: Row) -> bool:
    """Whether its checks look for the claim's premise instead of the claim."""
    return bool(row["expected"] == Expected.DOES_NOT_APPLY)


def _is_trend(row: Row) -> bool:
    return row["trend"] is not None and row["trend"]["measure"] is not None


def _total(row: Row, *roles: str) -> int:
    return sum(row[f"{role}_{world}"] for role in roles for world in WORLDS)


def _decided(row: Row, world: str) -> int:
    return int(row[f"shows_{world}"] + row[f"denies_{world}"])


def _asked(row: Row) -> list[str]:
    """The worlds that the minimum asks for."""
    return [world for world in WORLDS if row[f"minimum_{world}"] > 0]


def _verdict(row: Row) -> Judgement:
    if _total(row, "shows", "denies", "undecided") == 0:
        return Judgement.NOT_RUN
    if _denied(row):
        return Judgement.APPLIES if _of_premise(row) else Judgement.REFUTED
    shown = all(row[f"shows_{world}"] >= row[f"minimum_{world}"] for world in WORLDS)
    settled = _exists(row) or all(_settled(row, world) for world in WORLDS)
    agrees = not _is_trend(row) or all(row[f"agrees_{world}"] for world in _asked(row))
    if not (shown and settled and agrees and _controlled(row)):
        return Judgement.UNKNOWN
    return Judgement.DOES_NOT_APPLY if _of_premise(row) else Judgement.REPRODUCED


def _denied(row: Row) -> bool:
    if _exists(row):
        enough = all(row[f"denies_{world}"] >= row[f"refute_{world}"] and _settled(row, world) for world in WORLDS)
        return enough and _total(row, "shows") == 0
    fit_denies = any(row[f"disagrees_{world}"] and _settled(row, world) for world in WORLDS)
    return _total(row, "denies") > 0 or fit_denies


def _settled(row: Row, world: str) -> bool:
    """Whether enough of a world's trials are decided to conclude what always holds."""
    return _enough(_decided(row, world), row[f"undecided_{world}"], world)


def _looked_at(row: Row, world: str) -> bool:
    """Whether enough of a world's controls are clean or violated."""
    return _enough(row[f"clean_{world}"] + row[f"dirty_{world}"], row[f"unclear_{world}"], world)


def _enough(decided: int, others: int, world: str) -> bool:
    return 100 * decided >= DECIDED_PERCENT[world] * (decided + others)


def _controlled(row: Row) -> bool:
    clean = all(row[f"clean_{world}"] > 0 for world in _asked(row))
    return clean and _total(row, "dirty") == 0 and all(_looked_at(row, world) for world in WORLDS)


def _witness(row: Row) -> str | None:
    """A simulated trial if there is one, because it can be replayed exactly; else a live one."""
    role = "shows" if _exists(row) else "denies"
    first: str | None = row[f"{role}_simulated_first"] or row[f"{role}_live_first"]
    return first


def _examples(row: Row) -> list[str]:
    """For each world the trial that decides, and a control."""
    chosen = []
    roles = ("shows", "denies") if _exists(row) else ("denies", "shows")
    for world in WORLDS:
        chosen.append(row[f"{roles[0]}_{world}_first"] or row[f"{roles[1]}_{world}_first"])
        chosen.append(row[f"dirty_{world}_first"] or row[f"clean_{world}_first"])
    return [trial for trial in chosen if trial is not None]


def _frequency(row: Row, world: str) -> Row:
    shown, decided = row[f"shows_{world}"], _decided(row, world)
    low, high = wilson(shown, decided) or (None, None)
    undecided = row[f"undecided_{world}"]
    return {"world": world, "shown": shown, "decided": decided, "low": low, "high": high, "undecided": undecided}


def _measured(row: Row) -> list[Row]:
    """Of each measure of the reading, in each world: its range and median in the decided trials."""
    found = []
    for number, named in enumerate(row["measures"]):
        for world in WORLDS:
            values = [of[number] for role in ("shows", "denies") for of in row[f"{role}_{world}_values"]]
            known = [value for value in values if value is not None]
            if known:
                what = {"world": world, **named, "trials": len(known)}
                found.append(what | {"least": min(known), "median": float(median(known)), "most": max(known)})
    return found


# --- in words --------------------------------------------------------------------------------

_WHY_UNDECIDED = "no fault bit, a check is unknown or does not apply, or nothing proves that it ran live"


def why(row: Row) -> str:
    """The reason of the verdict, or everything that is missing for one; what was measured; and what is undecided."""
    return _reason(row) + "".join(f"; {each}" for each in measures_in_words(row["measured"])) + _undecided(row)


def _reason(row: Row) -> str:
    match row["verdict"]:
        case Judgement.NOT_RUN:
            return _why_not_run(row)
        case Judgement.REPRODUCED:
            return f"{_seen(row)}{_trend_in_words(row)}; the controls are clean"
        case Judgement.DOES_NOT_APPLY:
            return f"no trial has what the claim is about: {_seen(row)}"
        case Judgement.APPLIES:
            return f"trials have what the claim is about: {_seen(row)}"
        case Judgement.REFUTED:
            return _never_seen(row) if _exists(row) else _seen(row) + _trend_in_words(row)
    return _missing(row)


def _checks(row: Row, together: str = "and") -> str:
    return f" {together} ".join(row["checks"])


def _with_clean(row: Row) -> str:
    """` with b and c clean`, of a reading that asks for that."""
    return f" with {' and '.join(row['clean'])} clean" if row["clean"] else ""


def measures_in_words(measured: Iterable[Row]) -> list[str]:
    """`messages lost: 20 (20 to 24) in live trials and 20 in simulated trials` for each measure. `measured`: the fields
    of `results.Measured`."""
    found: dict[str, list[str]] = {}
    for each in measured:
        found.setdefault(each["what"], []).append(f"{amounts(each)} in {each['world']} trials")
    return [f"{what}: {' and '.join(worlds)}" for what, worlds in found.items()]


def amounts(measured: Row) -> str:
    """The median of a `results.Measured`, and in brackets the least and the most, if they are not the same: `0.503 s
    (0.379 s to 0.636 s)`."""
    least, middle, most = (_amount(measured["measure"], measured[name]) for name in ("least", "median", "most"))
    return middle if least == most else f"{middle} ({least} to {most})"


def _amount(measure: str, value: float) -> str:
    return seconds(round(value)) if measure.endswith("_us") else f"{value:,g}"


def _why_not_run(row: Row) -> str:
    if row["scenario"] is None:
        return str(row["waits_for"])
    asked = _asked(row)
    world = f"{asked[0]} " if len(asked) == 1 else ""
    conditions = [] if row["rules"] is None else [f"rules {row['rules']}"]
    conditions += [f"{each['parameter']} {each['operator']} {_bound(each)}" for each in row["conditions"]]
    where = f" with {' and '.join(conditions)}" if conditions else ""
    return f"no {world}trial of {row['scenario']}{where} in this store"


def _bound(condition: Row) -> str:
    """As in the ledger: text in quotes, except true and false."""
    text = condition["text"]
    return str(condition["bound"]) if text is None else text if text in ("true", "false") else f"'{text}'"


def _undecided(row: Row) -> str:
    """`; undecided: 1 live and 2 simulated trials (no fault bit, …); unclear: 1 live and 0 simulated controls`."""
    pieces = []
    for role, what in (("undecided", f"trials ({_WHY_UNDECIDED})"), ("unclear", "controls")):
        if _total(row, role):
            pieces.append(f"; {role}: {row[f'{role}_live']} live and {row[f'{role}_simulated']} simulated {what}")
    return "".join(pieces)


def _seen(row: Row) -> str:
    """How often the checks came out as they did, in each world with decided trials."""
    role = "shows" if _exists(row) or _total(row, "denies") == 0 else "denies"
    came_out = "violated" if _exists(row) or role == "denies" else "clean"
    shares = [_share(row, role, world) for world in WORLDS if _decided(row, world)]
    # One check is enough to deny what always holds.
    together = "or" if role == "denies" and not _exists(row) else "and"
    return f"{_checks(row, together)} {came_out}{_with_clean(row)} in {' and '.join(shares)}"


def _never_seen(row: Row) -> str:
    together = " together" if len(row["checks"]) > 1 else ""
    tried = " and ".join(f"{row[f'denies_{world}']} {world}" for world in WORLDS if row[f"denies_{world}"])
    return f"{_checks(row)} violated{together}{_with_clean(row)} in none of {tried} trials"


def _share(row: Row, role: str, world: str) -> str:
    """`3 of 4 live trials (30 to 95 %)`."""
    found, decided = row[f"{role}_{world}"], _decided(row, world)
    interval = wilson(found, decided)
    percent = "" if interval is None else f" ({100 * interval[0]:.0f} to {100 * interval[1]:.0f} %)"
    return f"{found} of {decided} {world} trials{percent}"


def _what_is_fitted(trend: Row) -> str:
    name = "exponent" if trend["model"] == "exponent" else "quadratic coefficient"
    return f"{name} of {trend['measure']} against {trend['against']}"


def _range(trend: Row) -> str:
    return f"between {trend['low']:.2f} and {trend['high']:.2f}"


def _trend_in_words(row: Row) -> str:
    """`; exponent of reads against members 1.91 (1.88 to 1.94) in simulated trials, expected between …`."""
    if not _is_trend(row) or not row["fits"]:
        return ""
    fits = ", ".join(_fit_in_words(fit) for fit in row["fits"])
    return f"; {_what_is_fitted(row['trend'])} {fits}, expected {_range(row['trend'])}"


def _fit_in_words(fit: Row) -> str:
    if fit["estimate"] is None:
        return f"not known in {fit['world']} trials"
    return f"{fit['estimate']:.2f} ({fit['low']:.2f} to {fit['high']:.2f}) in {fit['world']} trials"


def _missing(row: Row) -> str:
    """Everything that an unknown verdict lacks."""
    pieces = [
        f"a {world} control is violated: {row[f'dirty_{world}_first']}" for world in WORLDS if row[f"dirty_{world}"]
    ]
    if _exists(row) and _total(row, "shows") == 0 < _total(row, "denies"):
        return "; ".join([*pieces, *_too_few_decided(row), _not_enough_to_refute(row)])
    if not _exists(row):
        pieces += _too_few_decided(row)
    for world in WORLDS:
        if row[f"shows_{world}"] < row[f"minimum_{world}"]:
            pieces.append(_needs(row, world))
        if world in _asked(row) and row[f"clean_{world}"] == 0:
            pieces.append(f"needs one clean {world} control (the same with --control)")
        elif not _looked_at(row, world):
            pieces.append(f"fewer than {DECIDED_PERCENT[world]} % of {world} controls are clean or violated")
        if world in _asked(row) and _is_trend(row) and not (row[f"agrees_{world}"] or row[f"disagrees_{world}"]):
            pieces.append(_needs_fit(row, world))
    return "; ".join(pieces)


def _not_enough_to_refute(row: Row) -> str:
    enough = " and ".join(f"{row[f'refute_{world}']} {world}" for world in WORLDS)
    beside = "".join(_not_counted(row, world) for world in WORLDS)
    return f"{_never_seen(row)}{beside}; to refute it takes {enough}"


def _too_few_decided(row: Row) -> list[str]:
    return [
        f"fewer than {DECIDED_PERCENT[world]} % of {world} trials are decided"
        for world in WORLDS
        if not _settled(row, world)
    ]


def _needs(row: Row, world: str) -> str:
    need = row[f"minimum_{world}"] - row[f"shows_{world}"]
    decided = _decided(row, world)
    more = " more" if decided + row[f"undecided_{world}"] else ""
    text = f"needs one{more} {world} trial" if need == 1 else f"needs {need}{more} {world} trials"
    if decided:
        text += f" (so far {row[f'shows_{world}']} of {decided} show it)"
    return text + _not_counted(row, world)


def _not_counted(row: Row, world: str) -> str:
    """The number of a world's trials that are not counted because they repeat others."""
    repeats, again = row[f"repeats_{world}"], "seed or history" if world == "simulated" else "history"
    return f" ({repeats} not counted: same {again} as another trial)" if repeats else ""


def _needs_fit(row: Row, world: str) -> str:
    """Why the fit in a world decides nothing: too few sizes, or an interval that is too wide."""
    trend = row["trend"]
    fit = next((each for each in row["fits"] if each["world"] == world), None)
    sizes = 0 if fit is None else fit["sizes"]
    if fit is None or fit["estimate"] is None or sizes < trend["sizes"]:
        return f"needs {trend['sizes']} sizes in {world} trials (so far {sizes})"
    interval = f"{fit['low']:.2f} to {fit['high']:.2f}"
    return f"the {world} {_what_is_fitted(trend)}, {interval}, is neither wholly {_range(trend)} nor wholly outside"
