"""Methods on the command line: which there are, which flags each takes, and what is said of those it does not take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from typer.core import TyperCommand, TyperGroup

from countervail import registry
from countervail.core.errors import ParameterError
from countervail.registry import Kinds

# What the command line asks for unless told otherwise, whatever a class has by default.
USUAL: dict[str, Any] = {"k": 10, "target": "favourable"}
# Flags that are repeated, one entry each, or that are shorter than the parameter behind them.
_FLAGS = {
    "ranges": "--range",
    "forbidden": "--forbid",
    "costs": "--cost",
    "n_counterfactuals": "--n",
    "method": "--algorithm",
}


def explaining() -> Kinds:
    """What `explain --method` chooses from."""
    return {**registry.explainers(), **registry.explanation_protectors()}


def releasing() -> Kinds:
    """What `anonymize --method` chooses from."""
    return registry.table_protectors()


def releasing_rows() -> Kinds:
    """Those whose released rows are still people's: what `anonymize` draws and sweeps."""
    return {n: k for n, k in releasing().items() if registry.fact(k, "keeps_rows")}


def testable() -> Kinds:
    """Whatever releases a table, the papers' own variants included: what `dit --method` tests."""
    papers = {n: k for n, k in registry.published().items() if hasattr(k, "protect")}
    return {**releasing(), **papers}


def chosen(kinds: Kinds, name: str, given: Mapping[str, Any]) -> type[Any]:
    """The method of this name; flags that were given and that it does not take are refused."""
    if name not in kinds:
        raise ParameterError(f"--method must be one of {', '.join(kinds)}. Got '{name}' instead.")
    known = registry.parameters(kinds[name])
    if wrong := [flag for flag, value in given.items() if value is not None and flag not in known]:
        refused = ", ".join(f"{option(f)} ({_for(registry.takers(kinds, f))})" for f in wrong)
        raise ParameterError(f"--method {name} does not take {refused}.")
    return kinds[name]


def make(kind: type[Any], given: Mapping[str, Any]) -> Any:
    """The method with what was given."""
    plain = {n: v.value if isinstance(v, StrEnum) else v for n, v in given.items() if v is not None}
    return registry.made(kind, {**USUAL, **plain})


def option(parameter: str) -> str:
    """The flag of a parameter."""
    return _FLAGS.get(parameter, f"--{parameter.replace('_', '-')}")


def _for(methods: list[str]) -> str:
    return f"that is for {', '.join(methods)}" if methods else "no method does"


def listed(kinds: Kinds, flags: Sequence[str]) -> str:
    """The methods with what they do and the flags that they take, for the help."""
    lines = []
    for name, kind in kinds.items():
        known = {n: USUAL.get(n, default) for n, default in registry.parameters(kind).items()}
        taken = [f"`{option(f)}{_default(known[f])}`" for f in flags if f in known]
        lines.append(f"- `{name}`: {registry.summary(kind)} Takes {', '.join(taken) or 'no flags'}.")
    return "\n\n".join(["Methods, with the defaults of their flags:", *lines])


def _default(value: Any) -> str:
    return f" {value}" if isinstance(value, (int, float, str)) and not isinstance(value, bool) else ""


class PlainCommand(TyperCommand):
    """A command that takes each flag once unless it may be repeated, and in whose help a flag takes no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        said = args[: args.index("--")] if "--" in args else args
        for parameter in self.get_params(ctx):
            if getattr(parameter, "multiple", False) or not getattr(parameter, "opts", ()):
                continue
            flags = tuple(o for o in parameter.opts if o.startswith("-"))
            times = sum(word in flags or word.partition("=")[0] in flags for word in said)
            if times > 1:
                raise ParameterError(f"{flags[0]} takes one value here, and was given {times} times. Say it once.")
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _without_values(self.get_params(ctx))
        super().format_help(ctx, formatter)


class PlainGroup(TyperGroup):
    """Several commands, in whose help a flag takes no value."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _without_values(self.get_params(ctx))
        super().format_help(ctx, formatter)


def _without_values(parameters: Sequence[Any]) -> None:
    """Help shows no type behind a flag that is given or not."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = " "


def with_methods(kinds: Callable[[], Kinds], flags: Sequence[str]) -> type[PlainCommand]:
    """A command whose help lists the methods; they are looked up only then, because that imports them all."""

    class MethodsCommand(PlainCommand):
        def format_help(self, ctx: Any, formatter: Any) -> None:
            self.epilog = listed(kinds(), flags)
            super().format_help(ctx, formatter)

    return MethodsCommand
