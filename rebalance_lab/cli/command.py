"""What each command does otherwise than typer's: how it reads its arguments, and how its help is written.

Numbers are read by the rules of `kernel.numerals`, and files and folders have names. Typer would take all that Python's
`int` does, and an empty name for the current folder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.help import help_text
from rebalance_lab.cli.misplaced import instead_of, refuse_misplaced_settings
from rebalance_lab.kernel.numerals import number, whole_number

#: Type of an option -> how its text is read, and what it must be.
_READERS: dict[Any, tuple[Callable[[str], object], str]] = {
    int: (whole_number, "a whole number"),
    float: (number, "a number"),
}


class Command(TyperCommand):
    """A command of the lab."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """See `help`."""
        formatter.write(help_text(self, ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As typer's. Raises BadParameter for a text that is no number, where an option is one, and for an empty name
        of a file or folder, and Failure for an option or setting in the place of the other (`misplaced`). Every other
        error names the command whose help is to be read (`ctx`)."""
        try:
            self._readable(ctx, args)
            rest = super().parse_args(ctx, args)
        except TyperException as error:
            instead = instead_of(getattr(error, "option_name", ""), ctx, args)
            if instead is not None:
                raise Failure(instead) from None
            if getattr(error, "ctx", None) is None:  # as of an option without its value
                cast(Any, error).ctx = ctx
            raise
        refuse_misplaced_settings(ctx)
        return rest

    def _readable(self, ctx: Any, args: list[str]) -> None:
        """Raises BadParameter; see `parse_args`."""
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in self.get_params(ctx):
            annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
            text = given.get(parameter.name)
            if annotation is Path and text == "":
                raise typer.BadParameter("is empty; name a file or folder", ctx=ctx, param=cast(Any, parameter))
            if annotation in _READERS and isinstance(text, str):
                read, what = _READERS[annotation]
                try:
                    read(text)
                except ValueError:
                    raise typer.BadParameter(f"must be {what}", ctx=ctx, param=cast(Any, parameter)) from None
