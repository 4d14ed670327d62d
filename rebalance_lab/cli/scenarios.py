"""`scenarios`: the scenarios, or one of them with its description and settings."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.options import JsonOption
from rebalance_lab.cli.terminal import answer, print_json, say, table, whole
from rebalance_lab.trials.api import scenario, scenario_names
from rebalance_lab.trials.plan import Parameter, command_listing_plants, value_text
from rebalance_lab.trials.scenario import Scenario, plants_of


def scenarios(
    name: Annotated[str | None, typer.Argument(help="The scenario that is described.")] = None,
    *,
    plants: Annotated[bool, typer.Option("--plants", help="Show the planted bugs of one scenario instead.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the scenarios, or describe one: what happens, why, and its settings."""
    chosen = [scenario(each) for each in ([name] if name else scenario_names())]
    if plants and name is None:
        raise Failure("--plants: name a scenario, because each has planted bugs of its own")
    if as_json:
        print_json({each.name: _shape(each) for each in chosen})
    elif name is None:
        rows = [(each.name, ", ".join(each.claims), escape(each.summary)) for each in chosen]
        answer().print(table("Scenarios", ("scenario", "claims", "what happens"), rows))
        say("Describe one, with its settings: rebalance-lab scenarios NAME\nRun one: rebalance-lab run NAME")
    elif plants:
        _show_plants(chosen[0])
    else:
        _show(chosen[0])


def _shape(each: Scenario) -> dict[str, object]:
    parameters = {
        parameter.name: {"default": parameter.default, "unit": parameter.unit, "help": parameter.help}
        for parameter in each.parameters
    }
    return {
        "summary": each.summary,
        "description": each.description,
        "claims": each.claims,
        "worlds": each.worlds,
        "parameters": parameters,
        "plants": {str(bug): bug.meaning for bug in plants_of(each.subject)},
    }


def _show(each: Scenario) -> None:
    from rich.markdown import Markdown  # noqa: PLC0415 - slow to import, and no other command needs it

    console = answer()
    claims = f" ({', '.join(each.claims)})" if each.claims else ""
    say(f"[bold]{each.name}[/]{claims}: {escape(each.summary)}")
    say(f"Worlds: {', '.join(each.worlds)}\n")
    console.print(Markdown(each.description), "")
    rows = [(one.name, value_text(one.default), escape(_meaning(one))) for one in each.parameters]
    columns = ("name", "default", "meaning")
    console.print(table("Settings, by --set NAME=VALUE", columns, rows, numbers=("default",)))
    whole(f"Its {len(plants_of(each.subject))} planted bugs: {command_listing_plants(each.name)}")


def _show_plants(each: Scenario) -> None:
    rows = [(bug, escape(bug.meaning)) for bug in plants_of(each.subject)]
    answer().print(table("Planted bugs, by --set plant=NAME", ("name", "where: what"), rows))


def _range(parameter: Parameter) -> str:
    """` [1–5000]`: the smallest and the largest value of a number."""
    if parameter.maximum is None:
        return ""
    return f" [{'' if parameter.minimum is None else parameter.minimum}–{parameter.maximum}]"


def _meaning(parameter: Parameter) -> str:
    """What it is, and its choices or its range if it has any. A column for the range would leave no room for the names
    of Kafka's settings at 80 columns."""
    told = f"{parameter.help}: {', '.join(parameter.choices)}" if parameter.choices else parameter.help
    return f"{told}{_range(parameter)}"
