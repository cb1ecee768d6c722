"""Numbers as people write them: every digit that counts, thousands in groups, never a power of ten."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Any

import numpy as np

_CLEAN = 12  # a float so short but for its last digits was meant to be short
_SHORT = 6  # digits that are shown as they are
_ROUGH = 4  # digits of a long amount, beside which the exact numbers stand
_DECIMALS = 2  # that are never too many
_SHARE = Decimal("0.01")  # of an interval's width that rounding its ends may take


def exact(value: Any) -> Decimal:
    """The number as it is written in full, without the noise in a float's last digit."""
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return Decimal(int(value))
    if isinstance(value, (np.float32, np.float16)):
        return Decimal(str(value))
    number = float(value)
    short = Decimal(f"{number:.15g}")
    noisy = math.isfinite(number) and abs(float(short) - number) <= 2 * math.ulp(number)
    return short if noisy and _digits(short) <= _CLEAN else Decimal(repr(number))


def plain(number: Decimal, thousands: str = "", decimal: str = ".") -> str:
    """The number in full, in groups of three where `thousands` is given."""
    if not number.is_finite():
        return "-∞" if number < 0 else "∞"
    text = f"{number.copy_abs():f}"
    whole, _, part = text.partition(".")
    part = part.rstrip("0")
    whole = f"{int(whole):,}".replace(",", thousands)
    shown = f"{whole}{decimal}{part}" if part else whole
    return f"-{shown}" if number < 0 else shown


def is_long(number: Decimal) -> bool:
    """Whether a number has more decimals than anybody reads."""
    fraction = number.is_finite() and number != number.to_integral_value()
    return fraction and _digits(number) > _SHORT


def rough(number: Decimal) -> Decimal:
    """A long number cut to what matters; whole digits stay."""
    return _to_digits(number, ROUND_HALF_EVEN)


def rough_up(number: Decimal) -> Decimal:
    """The same, never less than the number."""
    return _to_digits(number, ROUND_CEILING)


def rough_down(number: Decimal) -> Decimal:
    """The same, never more than the number."""
    return _to_digits(number, ROUND_FLOOR)


def shortened(number: Decimal, apart: tuple[Decimal, Decimal]) -> Decimal:
    """A number cut to what matters if it has more decimals than anybody reads, and lies outside of a range still."""
    decimals = -int(number.as_tuple().exponent) if number.is_finite() else 0
    short = rough(number) if decimals > _DECIMALS else number
    low, high = apart
    return short if (short < low) == (number < low) and (short > high) == (number > high) else number


def difference(a: Decimal, b: Decimal) -> Decimal:
    """How far two numbers are apart, to the last digit."""
    with localcontext(prec=2000):
        return (a - b).copy_abs()


def inside(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Ends that are easier to read and lie inside: all that is said of the shorter range holds in the longer one."""
    if not (low.is_finite() or high.is_finite()) or not (is_long(low) or is_long(high)):
        return low, high
    width = (
        difference(low, high) if low.is_finite() and high.is_finite() else (low if low.is_finite() else high).copy_abs()
    )
    if not width:
        return low, high
    step = Decimal(1).scaleb(min(0, (width * _SHARE).adjusted()))
    near = _to_step(low, step, ROUND_CEILING) if is_long(low) else low
    far = _to_step(high, step, ROUND_FLOOR) if is_long(high) else high
    return (near, far) if low <= near <= far <= high else (low, high)


def _digits(number: Decimal) -> int:
    """How many digits count."""
    return len("".join(map(str, number.as_tuple().digits)).rstrip("0"))


def _to_step(number: Decimal, step: Decimal, rounding: str) -> Decimal:
    with localcontext(prec=2000):
        return number.quantize(step, rounding=rounding)


def _to_digits(number: Decimal, rounding: str) -> Decimal:
    if not is_long(number):
        return number
    return Context(prec=max(_ROUGH, number.adjusted() + 1), rounding=rounding).create_decimal(number)
