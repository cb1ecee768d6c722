"""Models behind HTTP: rows go out as JSON in batches, decisions or scores come back."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from countervail.core.errors import ParameterError, PrivacyWarning, RemoteModelError, bad_parameter

_OWNER = "Remote"
_CLOSE = 1e-6  # scores may differ so much with the batch that a row comes in

Row = list[Any]
Said = str | int | float | bool | tuple[float, ...]


def split_request(columns: list[str], rows: list[Row]) -> Any:
    """What MLflow's scoring servers take."""
    return {"dataframe_split": {"columns": columns, "data": rows}}


class Remote:
    """A model behind HTTP, asked with JSON: pass it wherever a model is taken.

    Each batch is posted as `{"dataframe_split": {"columns": [...], "data": [[...], ...]}}`. The answer is a list with
    one entry per row, or an object that has it under `predictions`: a label; or a list of scores, in the order of
    `labels` (or of the table's labels, sorted); or an object with a score for each label.

    Parameters
    ----------
    url : str
        Where rows are posted to.
    labels : sequence, optional
        What the scores of a row stand for, where they come as a list.
    batch : int
        Rows per request; one more is there to see whether the model agrees with itself.
    timeout : float
        Seconds that one request may take in all.
    retries : int
        How often a request is sent again when there was no answer, or the server was too busy.
    wait : float
        Seconds before the first of them; each waits twice as long as the one before.
    cache : int
        How many rows' answers are kept, by a digest of the row. Equal rows are asked about once; 0 keeps none.
    headers : mapping, optional
        Headers of every request, such as a token. They are never shown.
    request : callable, optional
        Makes the object to post from column names and rows, for servers that take another form.

    Notes
    -----
    Threat model: whoever runs the server, or reads the traffic, sees every row that is asked about. That is the asker's
    row and made-up ones for `CFK(search="groups")`. It is every row of the training table for NICE, and every record as
    it lies on the public grid for differentially private explainers, whose fit asks what is decided about it; they let
    the model forget these (`forget`), so that no answer comes sooner because somebody was there. Redirects are not
    followed, so that rows and headers reach nobody else.

    Every request repeats one row of an earlier one: a model that answers the same row differently is refused.

    Examples
    --------
    >>> from countervail.model import Remote
    >>> Remote("https://models.example.org/credit/invocations?version=3", labels=["bad", "good"])
    Remote('https://models.example.org/credit/invocations')
    """

    def __init__(
        self,
        url: str,
        *,
        labels: Sequence[Any] | None = None,
        batch: int = 1000,
        timeout: float = 30.0,
        retries: int = 2,
        wait: float = 0.5,
        cache: int = 100_000,
        headers: Mapping[str, str] | None = None,
        request: Callable[[list[str], list[Row]], Any] = split_request,
    ) -> None:
        self.url, self.shown = url, _checked_url(url)
        self.batch, self.retries = _count(batch, "batch", 1), _count(retries, "retries", 0)
        self.cache = _count(cache, "cache", 0)
        self.timeout, self.wait = _seconds(timeout, "timeout", least=1e-3), _seconds(wait, "wait", least=0.0)
        self.labels = None if labels is None else list(labels)
        if self.labels is not None and (len(self.labels) < 2 or len(set(self.labels)) < len(self.labels)):
            raise bad_parameter(_OWNER, "labels", "at least two different labels", f"{len(self.labels)} of them")
        self.headers, self.request = dict(headers or {}), request
        self._forget()

    def __call__(self, frame: pd.DataFrame) -> Any:
        """Labels, or scores in a frame whose columns are the labels where these are known."""
        columns, rows = [str(n) for n in frame.columns], _plain_rows(frame)
        keys = [_digest(columns, row) for row in rows]
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
        todo = {key: row for key, row in zip(keys, rows) if key not in found}
        fresh = list(todo)
        for start in range(0, len(fresh), self.batch):
            part = fresh[start : start + self.batch]
            found |= zip(part, self._ask(columns, [todo[key] for key in part]))
            self._keep({key: found[key] for key in part})
        return self._shaped([found[key] for key in keys])

    def forget(self) -> None:
        """Keep no answer that was given before: what is remembered comes sooner, and tells what was asked about."""
        with self._lock:
            self._kept.clear()
            self._control.clear()

    def __repr__(self) -> str:
        return f"{_OWNER}({self.shown!r})"

    def __getstate__(self) -> dict[str, Any]:
        # Neither answers nor the row that is repeated leave the process.
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def _forget(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[bytes, Said] = OrderedDict()
        self._control: dict[tuple[str, ...], tuple[Row, Said]] = {}
        self._names = None if self.labels is None else [str(label) for label in self.labels]

    def _keep(self, answers: Mapping[bytes, Said]) -> None:
        with self._lock:
            self._kept.update(answers)
            while len(self._kept) > self.cache:
                self._kept.popitem(last=False)

    def _ask(self, columns: list[str], rows: list[Row]) -> list[Said]:
        """One request; its last row is one that was asked about before."""
        from countervail.model.http_json import post_json

        known = self._control.get(tuple(columns))
        row = known[0] if known is not None else rows[0]
        data = post_json(
            self.url,
            self.request(columns, [*rows, row]),
            self.headers,
            shown=self.shown,
            timeout=self.timeout,
            retries=self.retries,
            wait=self.wait,
        )
        said = self._read(data, len(rows) + 1)
        before = known[1] if known is not None else said[0]
        if not _same(before, said[-1]):
            raise RemoteModelError(
                f"The model at {self.shown} disagrees with itself: one row was asked about twice and got two answers. "
                f"Explanations need a model that always decides alike."
            )
        self._control.setdefault(tuple(columns), (row, before))
        return said[:-1]

    def _read(self, data: Any, n: int) -> list[Said]:
        """The answers as labels, or as scores in one order."""
        items = data.get("predictions") if isinstance(data, dict) else data
        if not isinstance(items, list):
            raise self._rubbish("must be a list, or an object with a list of 'predictions'")
        if len(items) != n:
            raise self._rubbish(f"must have one entry per row. It has {len(items):,} for {n:,} rows")
        if all(isinstance(item, dict) for item in items):
            names = self._names or sorted(items[0])
            self._names = names
            if any(set(item) != set(names) for item in items):
                raise self._rubbish("must have a score for each label, and for no other, in every row")
            items = [[item[name] for name in names] for item in items]
        if all(isinstance(item, list) for item in items):
            due = len(self._names or items[0])
            if due < 2 or any(len(item) != due for item in items):
                raise self._rubbish("must have a score for each label in every row")
            if not all(_is_figure(v) for item in items for v in item):
                raise self._rubbish("must hold numbers for scores, all of them finite")
            return [tuple(float(v) for v in item) for item in items]
        if not all(isinstance(item, (str, bool)) or _is_figure(item) for item in items):
            raise self._rubbish("must hold labels, or lists of scores, or objects with a score for each label")
        return items

    def _shaped(self, answers: list[Said]) -> Any:
        if not answers or not isinstance(answers[0], tuple):
            out = np.empty(len(answers), dtype=object)
            out[:] = answers
            return out
        return pd.DataFrame(np.array(answers, dtype=float), columns=self.labels or self._names)

    def _rubbish(self, must: str) -> RemoteModelError:
        return RemoteModelError(f"The answer of the model at {self.shown} {must}.")


def _checked_url(url: Any) -> str:
    """The URL without what may be secret in it: user, password, query."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, TypeError, AttributeError):
        host = None
    if not isinstance(url, str) or host is None or parts.scheme not in ("http", "https"):
        raise ParameterError(
            f"The 'url' parameter of {_OWNER} must be an address that begins with https:// or http://."
        )
    shown = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}{parts.path}"
    if parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
        text = f"Rows are sent to {shown} without encryption: whoever is on the way can read them. Use https://."
        warnings.warn(text, PrivacyWarning, stacklevel=3)
    return shown


def _count(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise bad_parameter(_OWNER, name, f"a whole number of at least {least}", value)
    return int(value)


def _seconds(value: Any, name: str, least: float) -> float:
    if not _is_figure(value) or not least <= value <= 86_400:
        raise bad_parameter(_OWNER, name, f"a number of seconds from {least:g} to 86400", value)
    return float(value)


def _is_figure(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and abs(value) < 2**1023 and math.isfinite(value)


def _same(one: Said, other: Said) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and np.allclose(one, other, rtol=_CLOSE, atol=_CLOSE)
    return type(one) is type(other) and one == other


def _plain_rows(frame: pd.DataFrame) -> list[Row]:
    """Rows as JSON has them: numbers, truth values, texts, and null where a value is missing."""
    columns = [[_plain(v) for v in frame[n].array] for n in frame.columns]
    return [list(row) for row in zip(*columns)] if columns else [[] for _ in range(len(frame))]


def _plain(value: Any) -> Any:
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        if math.isinf(value):
            raise RemoteModelError("JSON has no infinite numbers: a remote model cannot be asked about such rows.")
        return float(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _digest(columns: list[str], row: Row) -> bytes:
    return hashlib.blake2b(json.dumps([columns, row]).encode(), digest_size=16).digest()
