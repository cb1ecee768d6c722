"""What the cells of a column are, whatever it is called: mail, telephones, accounts, dates, postcodes, names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final
from zlib import crc32

import pandas as pd

_MOST: Final = 0.8  # of the different texts must have a form
_ENOUGH: Final = 5  # different texts, to speak of a form at all
_LONG: Final = 5  # digits that number people rather than kinds
_LOOKED_AT: Final = 2_000  # different texts at most

_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_PHONE = re.compile(r"(\+|00|0|\()[\d\s()/.-]{6,}\d")
_IBAN = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}")
_ISO = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}(:\d{2})?.*)?")
_DAY_FIRST = re.compile(r"\d{1,2}[-/. ]\s?(\d{1,2}|[^\W\d]{3,9}\.?)[-/. ]\s?(\d{4}|\d{2})")
_MONTH_FIRST = re.compile(r"[^\W\d]{3,9}\.? \d{1,2},? \d{4}")
# Letters before digits are a country's, with a dash between: K00001 is a customer.
_COUNTRY = (
    "A|AT|AX|B|BE|BG|CH|CZ|D|DE|DK|E|EE|ES|F|FI|FL|FO|FR|GL|GR|H|HR|HU|I|IT|L|LI|LT|LU|LV|MC|MD|N|NL|NO|P|PL|PT|RO|S|"
    "SE|SI|SK|SM"
)
_POSTCODE = re.compile(
    r"[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|\d{4} ?[A-Z]{2}|\d{2}-\d{3}|\d{5}-\d{4}|[A-Z]\d[A-Z] ?\d[A-Z]\d|"
    rf"(?:{_COUNTRY})[- ]\d{{4,5}}"
)
_CODE = re.compile(r"([^\W\d_]{1,6}[-_/ ]?)(\d{1,12})")
_NAME = re.compile(r"(?:[^\W\d_]\S*,? ){1,3}[^\W\d_]\S*")


def form_of(values: pd.Series) -> str:
    """Which form most of the different texts of a column have; nothing where there is none, or too few texts.

    Examples
    --------
    >>> form_of(pd.Series(["31.12.1999", "1.2.2003", "5.6.1978", "9.9.1990", "12.3.1956"]))
    'dates'
    """
    texts = [v.strip() for v in values.dropna().astype(object).unique() if isinstance(v, str) and v.strip()]
    if len(texts) > _LOOKED_AT:  # those that a hash picks, wherever they stand
        texts = sorted(texts, key=lambda t: (crc32(t.encode("utf-8", "replace")), t))[:_LOOKED_AT]
    if len(texts) < _ENOUGH:
        return ""
    for form, fits in _FORMS.items():
        if sum(map(fits, texts)) >= _MOST * len(texts):
            return form
    return "names" if _are_names(texts) else ""


def are_numbered(texts: Iterable[str]) -> bool:
    """Whether texts are the same letters before a running number, or a long one, as customers and patients have.

    Examples
    --------
    >>> are_numbered(f"P{i}" for i in range(75)), are_numbered(["A-1010", "A-8010", "A-6020", "A-5020"])
    (True, False)
    """
    found = [_CODE.fullmatch(t) for t in texts]
    if not found or not all(found) or len({m[1].casefold() for m in found if m}) > 1:
        return False
    numbers = {int(m[2]) for m in found if m}
    running = max(numbers) - min(numbers) < 2 * len(numbers)
    return running or all(len(m[2]) >= _LONG for m in found if m)


@cache
def _given_names() -> frozenset[str]:
    """Common given names of the five languages, without accents."""
    listed = files("countervail.data") / "bundled" / "given_names.txt"
    return frozenset(listed.read_text(encoding="utf-8").split())


def _is_account(text: str) -> bool:
    bare = re.sub(r"[\s-]", "", text).upper()
    if not _IBAN.fullmatch(bare):
        return False
    return int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1


def _is_date(text: str) -> bool:
    if not (_ISO.fullmatch(text) or _DAY_FIRST.fullmatch(text) or _MONTH_FIRST.fullmatch(text)):
        return False
    numbers = [int(n) for n in re.findall(r"\d+", text.split("T")[0].split(":")[0])[:3]]
    return sum(n > 31 for n in numbers) <= 1 and any(1 <= n <= 31 for n in numbers)


def _are_names(texts: list[str]) -> bool:
    """Two to four words each, and given names among them more often than in places or labels."""
    if sum(bool(_NAME.fullmatch(t)) for t in texts) < _MOST * len(texts):
        return False
    known = sum(any(w.strip(",.").casefold() in _given_names() for w in t.split()) for t in texts)
    return known >= 0.1 * len(texts) and known >= 2


_FORMS: Final = {
    "e-mail addresses": lambda t: bool(_MAIL.fullmatch(t)),
    "accounts (IBAN)": _is_account,
    "dates": _is_date,
    "telephone numbers": lambda t: bool(_PHONE.fullmatch(t)) and sum(c.isdigit() for c in t) >= 7,
    "postcodes": lambda t: bool(_POSTCODE.fullmatch(t.upper())),
}
