"""Options and settings that are given in each other's place: what to write instead."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_lab.cli.at_once import NAME
from rebalance_lab.cli.failures import Failure

#: The option of commands that take settings of a scenario.
_SET = "--set"

#: The command in which a setting has several values.
_OF_SEVERAL = "sweep"


def refuse_misplaced_settings(context: Any) -> None:
    """Raises Failure for a `--set` that names an option of the command, or that has several values where one is
    possible. `context`: typer's, of a command whose arguments were parsed; without a scenario nothing is refused."""
    name = context.params.get("scenario")
    options = _options(context.command)
    known = _settings(name) if _SET in options and name else None
    if known is None:
        return
    for text in context.params[options[_SET].name] or ():
        key, _, value = text.partition("=")
        option = _option_meant(key, options)
        if option is not None and (key not in known or value in _choices(options[option])):
            raise Failure(f"{_SET} {text}: use the option {_typed(option, options, key, value)}")
        if "," in value and key in known and context.command.name != _OF_SEVERAL:
            several = shlex.join([NAME, _OF_SEVERAL, name, _SET, text])
            raise Failure(
                f"{_SET} {text}: {context.command.name} takes one value; sweep takes several values: {several}"
            )


def instead_of(option: str, context: Any, arguments: Sequence[str]) -> str | None:
    """What to write instead of an option that the command does not have: one of the lab's own, which stands before the
    command, or a setting of the scenario among `arguments`. None if it is neither."""
    root = context.find_root()
    if context is not root and option in _options(root.command):
        words = context.command_path.removeprefix(root.command_path).strip()
        return f"{option} stands before the command: {NAME} {option} {words} ..."
    if _SET not in _options(context.command):
        return None
    known = next((its for its in map(_settings, arguments) if its is not None), frozenset())
    key = option.removeprefix("--").replace("-", "_")
    if key not in known:
        return None
    return f"{option} is a setting of the scenario: use {_SET} {key}=VALUE"


def _options(command: Any) -> dict[str, Any]:
    """The options of a command, by each of their names."""
    return {option: each for each in command.params for option in each.opts if option.startswith("-")}


def _settings(name: str) -> frozenset[str] | None:
    """Those of a scenario; None if there is none of that name."""
    from rebalance_lab.trials.api import PLANT  # noqa: PLC0415 - commands without settings need no scenarios
    from rebalance_lab.trials.scenario import scenario, scenario_names  # noqa: PLC0415

    if name not in scenario_names():
        return None
    return frozenset({PLANT, *(each.name for each in scenario(name).parameters)})


def _option_meant(key: str, options: Mapping[str, Any]) -> str | None:
    """The option of that name, or of its plural: `--seeds` for `seed`."""
    option = f"--{key.replace('_', '-')}"
    return next((each for each in (option, f"{option}s") if each in options), None)


def _choices(option: Any) -> tuple[str, ...]:
    """The values of an option that is one of a few words; none for another. `members` and `brokers` are numbers as
    settings, and words as options."""
    annotation = option.type_descriptor.annotation
    return tuple(str(each.value) for each in getattr(annotation, "__members__", {}).values())


def _typed(option: str, options: Mapping[str, Any], key: str, value: str) -> str:
    """The option with the value, if it is one and of the same meaning."""
    is_the_same = option.removeprefix("--").replace("-", "_") == key
    has_value = is_the_same and value and "," not in value and not options[option].is_flag
    return f"{option} {shlex.quote(value)}" if has_value else option
