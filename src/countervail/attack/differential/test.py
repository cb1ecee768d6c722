"""Differential inference testing: would the adversary have learnt this about you without you?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import BernoulliNB
from sklearn.tree import DecisionTreeClassifier

from countervail.attack.differential.checkpoint import Checkpoint, Progressed, digest_of
from countervail.attack.differential.encodings import make_specs, parse_encoding, quantiles_before
from countervail.attack.differential.general import (
    OWNER,
    Job,
    ReadRelease,
    always_the_same,
    most_likely,
    read_published,
    run_batch,
    secret_codes,
    trained,
)
from countervail.attack.differential.kinds import kinds_of_people
from countervail.attack.differential.naive_bayes import IdentityCounts, both_predictions, closed_form, identity
from countervail.attack.differential.prior import Prior
from countervail.attack.differential.result import DifferentialResult as DifferentialResult
from countervail.attack.differential.secret_groups import group_numbers
from countervail.core.arrays import Ints
from countervail.core.divergence import Distance
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.files.release_file import read_release
from countervail.core.hierarchy import Hierarchy
from countervail.core.people import rows_per_person
from countervail.core.protocols import LeaveOneOut, LeavesOneOut, Progress
from countervail.core.rng import generator
from countervail.core.stats import Estimate, clopper_pearson
from countervail.core.table import Table

_REPEATS = 10


class DifferentialInferenceTest(BaseEstimator):
    """Train the same learner on the release with and without each person; compare what it predicts about them.

    Parameters
    ----------
    anonymiser : table protector, or function from Table to Release or to a DataFrame of counts
        What is tested. It is run once per tested person, unless it offers `leave_one_out`. Aggregated data are a frame
        with the sensitive column, some or all quasi-identifiers, and `count`, the people of each combination (or a
        noisy number of them).
    learner : scikit-learn classifier with `predict_proba`, optional
        Default: `BernoulliNB()`.
    second : scikit-learn classifier, "tree" or None
        A second learner, reported beside the first on `beside` people; by default a decision tree.
    encoding : str or pair
        "tf-tf" (is the person's own value in the cell?), or any of the 6 continuous (scaling, bounds, binary,
        quantiles-before, quantiles-after, tf) with any of the 4 categorical encodings (hot, binary, hot-after, tf).
    quantiles : int
        For the encodings by quantiles.
    distance : {"emd", "max_divergence", "kl"}
    ground : {"equal", "ordered"}, Hierarchy or matrix
        How far apart two sensitive values are, for "emd"; in a hierarchy by the length of the path between them, groups
        that are values themselves included.
    scale : {"half", "quarter"}
        Of "emd" with equal ground: half the L1 distance, or the quarter that the paper prints.
    groups : int, optional
        For a sensitive column of numbers: they are put into so many groups of about equally many people, in order,
        before anything else; use `ground="ordered"` with it. By default every number is a class of its own.
    prior : mapping or DataFrame, optional
        What the adversary knows beforehand: a weight for each sensitive value, for everybody alike or (a frame with a
        column per value) for each row of the table. Both predictions are multiplied by it. By default all values weigh
        the same, as in the paper.
    n_records : int, optional
        How many people are tested, drawn at random; default: everybody.
    repeats : int, optional
        Runs per person; default: 1, or 10 where the anonymiser or the learner draws lots.
    path : {"auto", "fast", "general"}
        "fast" counts what the release would be without each person; "general" runs everything again.
    beside : int
        How many people the second learner is tried on; 0 leaves out all that is reported beside.
    n_jobs : int
        Processes that share the people (joblib).
    random_state : int
        Which people are drawn, and the lots of repeated runs.

    Notes
    -----
    *Threat model*: someone with the release, a person's quasi-identifiers and this learner. A large distance shows
    that the person's own record gives them away; a small one shows that this learner does not see it, and is no
    guarantee. Differences are measured, not how well anything is guessed.

    References
    ----------
    Kassem, Acs, Castelluccia: Differential inference testing, a practical approach to evaluate anonymized data (2018).

    Examples
    --------
    >>> import countervail as cv
    >>> table = cv.load("german_credit").with_roles(sensitive=["job"])
    >>> test = cv.DifferentialInferenceTest(cv.published.BasicMondrian(k=5), beside=0)
    >>> result = test.run(table)
    >>> bool(0 < result.mean < result.epsilon <= 1), len(result.d_pp)
    (True, 1000)
    """

    def __init__(
        self,
        anonymiser: Any,
        *,
        learner: Any = None,
        second: Any = "tree",
        encoding: str | tuple[str, str] = "tf-tf",
        quantiles: int = 5,
        distance: Literal["emd", "max_divergence", "kl"] = "emd",
        ground: Any = "equal",
        scale: Literal["half", "quarter"] = "half",
        groups: int | None = None,
        prior: Any = None,
        n_records: int | None = None,
        repeats: int | None = None,
        path: Literal["auto", "fast", "general"] = "auto",
        beside: int = 100,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.anonymiser = anonymiser
        self.learner = learner
        self.second = second
        self.encoding = encoding
        self.quantiles = quantiles
        self.distance = distance
        self.ground = ground
        self.scale = scale
        self.groups = groups
        self.prior = prior
        self.n_records = n_records
        self.repeats = repeats
        self.path = path
        self.beside = beside
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _said_distance(self) -> str:
        """What stands in results: which distance, and over which ground."""
        if self.distance != "emd":
            return self.distance
        if isinstance(self.ground, str):
            return f"emd, {self.scale}" if self.ground == "equal" else f"emd, {self.ground} values"
        return f"emd, {'path lengths in a hierarchy' if isinstance(self.ground, Hierarchy) else 'a given ground'}"

    def run(
        self,
        table: Table,
        sensitive: str | None = None,
        *,
        label: str | None = None,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> DifferentialResult:
        """Test the people of a table.

        With `checkpoint`, what has been found is kept in that file (as private as the table), and a run that was
        stopped goes on from it. `sensitive` is the schema's only sensitive column unless named.
        """
        setting = _Setting.of(self, table, sensitive)
        rows = setting.drawn(self.n_records, self.random_state)
        named = label if label is not None else _name(self.anonymiser)
        result = self._main(setting, rows, named, progress, checkpoint)
        if self.beside:
            result = replace(result, beside=self._beside(setting, result, named))
        return result

    def run_files(
        self, table: Table, whole: str | Path, without: Mapping[int, str | Path], sensitive: str | None = None
    ) -> DifferentialResult:
        """Test with published files alone: that of everybody, and for some rows of the table that without the row."""
        if self.groups is not None:
            raise bad_parameter(OWNER, "groups", "None for files: put the numbers into groups before", self.groups)
        setting = _Setting.of(self, table, sensitive)
        if not without or any(not 0 <= int(i) < len(table) for i in without):
            must = "a mapping of row positions of the table to files"
            raise bad_parameter(OWNER, "without", must, f"{len(without)} file(s) for positions that do not fit")
        job = setting.job(self, None, random=False, whole=None)
        names = [s.column.name for s in setting.specs]

        def read(path: str | Path) -> ReadRelease:
            return ReadRelease.of(read_release(path, table), names, setting.sensitive, setting.values)

        everybody = read(whole)
        rows = np.array(sorted(int(i) for i in without), dtype=np.int64)
        found = np.stack([job.compare(int(i), everybody, read(without[int(i)])) for i in rows])
        return self._result(setting, rows, found, "files", "general", random=False)

    def _main(
        self, setting: _Setting, rows: Ints, label: str, progress: Progress | None, checkpoint: str | Path | None
    ) -> DifferentialResult:
        source = self._source(setting) if self.path != "general" else None
        if source is None and self.path == "fast":
            must = "'auto' or 'general' for this anonymiser, learner and encoding"
            hint = "The fast path takes strict cuts of Mondrian or published.BasicMondrian, BernoulliNB and 'tf-tf'."
            raise bad_parameter(OWNER, "path", must, self.path, hint)
        if source is not None:
            found = self._fast(setting, rows, source)
            if progress is not None:
                progress(len(rows), len(rows))
            return self._result(setting, rows, found, label, "fast", random=False)
        found, random = self._general(setting, rows, progress, checkpoint)
        return self._result(setting, rows, found, label, "general", random=random)

    def _source(self, setting: _Setting) -> LeaveOneOut | None:
        """Counts with and without each person, where they are to be had and suffice."""
        if setting.encoding != ("tf", "tf") or not closed_form(setting.learner) or (self.repeats or 1) > 1:
            return None
        if self.anonymiser is identity:
            secret = secret_codes(setting.table.frame[setting.sensitive], setting.values)
            return IdentityCounts.of(setting.table, secret, setting.values)
        if not isinstance(self.anonymiser, LeavesOneOut):
            return None
        return self.anonymiser.leave_one_out(setting.table, setting.sensitive)

    def _fast(self, setting: _Setting, rows: Ints, source: LeaveOneOut) -> NDArray[np.float64]:
        place = [setting.values.index(v) for v in source.values]
        p, q = (np.zeros((len(rows), len(setting.values))) for _ in range(2))
        p[:, place], q[:, place] = both_predictions(source, rows, float(setting.learner.alpha))
        if setting.prior is not None:
            p, q = setting.prior.after(p, rows), setting.prior.after(q, rows)
        changed = (most_likely(p) != most_likely(q)).astype(float)
        return np.stack([setting.measure(p, q), changed, np.full(len(rows), np.nan)], axis=1)[:, :, None]

    def _general(
        self, setting: _Setting, rows: Ints, progress: Progress | None, checkpoint: str | Path | None
    ) -> tuple[NDArray[np.float64], bool]:
        whole = always_the_same(self.anonymiser, setting.table)
        random = whole is None or setting.learner.get_params().get("random_state", 0) is None
        repeats = self.repeats if self.repeats is not None else _REPEATS if random else 1
        job = setting.job(self, self.anonymiser, random=random, whole=whole)
        seeds = generator(self.random_state).integers(2**31, size=(len(rows), repeats, 3))
        file = Checkpoint(checkpoint, digest_of(setting.table, rows, self._settings(setting, repeats)), OWNER)
        progressed = file.load(len(rows), repeats)
        self._work(job, rows, seeds, progressed, file, progress)
        return progressed.found, random

    def _work(
        self, job: Job, rows: Ints, seeds: Ints, progressed: Progressed, file: Checkpoint, progress: Progress | None
    ) -> None:
        """Everybody who is not done yet, in small batches; each is kept on file before the next is waited for."""
        from joblib import Parallel, delayed

        left = np.flatnonzero(~progressed.done)
        size = max(1, min(16, len(left) // 12))  # every batch carries the table to its process
        batches = [left[a : a + size] for a in range(0, len(left), size)]
        pool = Parallel(n_jobs=self.n_jobs, return_as="generator")
        answers = pool(delayed(run_batch)(job, rows[b], seeds[b]) for b in batches)
        for batch, answer in zip(batches, answers):
            progressed.found[batch] = answer
            progressed.done[batch] = True
            file.save(progressed)
            if progress is not None:
                progress(int(progressed.done.sum()), len(rows))

    def _settings(self, setting: _Setting, repeats: int) -> dict[str, Any]:
        own = {k: v for k, v in self.get_params(deep=False).items() if k not in ("n_jobs", "anonymiser", "learner")}
        own["prior"] = None if setting.prior is None else setting.prior.digest
        parts = {"anonymiser": self.anonymiser, "learner": setting.learner}
        described = {
            name: {type(p).__name__: p.get_params()} if hasattr(p, "get_params") else _name(p)
            for name, p in parts.items()
        }
        return {**own, **described, "sensitive": setting.sensitive, "repeats": repeats}

    def _result(
        self, setting: _Setting, rows: Ints, found: NDArray[np.float64], label: str, path: str, *, random: bool
    ) -> DifferentialResult:
        d_pp = found[:, 0].mean(axis=1)
        changed = found[:, 1].mean(axis=1)
        share = clopper_pearson(int(np.rint(changed.sum())), len(rows))
        if len(rows) == len(setting.table):
            share = Estimate(float(changed.mean()), float(changed.mean()), float(changed.mean()), len(rows))
        before = (
            []
            if setting.prior is None
            else ["The adversary is taken to know a prior, which is part of both predictions."]
        )
        caveats = [*before, "Tests one learner only: a small distance is no guarantee."]
        if len(rows) < len(setting.table):
            caveats.append("Some of the people were drawn: the largest distance of all may be larger.")
        if (most := rows_per_person(setting.original)) > 1:
            caveats.append(
                f"Some people have up to {most} rows, and rows are left out one at a time: of such a person the others "
                f"stay, so that a small distance says little. Keep one row for each person."
            )
        return DifferentialResult(
            label,
            type(setting.learner).__name__,
            self._said_distance(),
            path,
            len(setting.table),
            d_pp,
            rows,
            found[:, 0],
            share,
            found[:, 2] if random else None,
            tuple(kinds_of_people(setting.original, rows, d_pp)),
            {},
            tuple(caveats),
        )

    def _beside(self, setting: _Setting, result: DifferentialResult, label: str) -> dict[str, DifferentialResult]:
        """The open table to the same learner, and both to a second one on fewer people."""
        second = DecisionTreeClassifier(random_state=0) if isinstance(self.second, str) else self.second
        few = min(self.beside, len(result.d_pp))
        common = {"beside": 0, "path": "auto", "repeats": 1}
        fast = setting.encoding == ("tf", "tf") and closed_form(setting.learner)
        many = self.n_records if fast else few
        open_table = self._with(anonymiser=identity, n_records=many, **common)
        table, sensitive = setting.original, setting.sensitive
        out = {"identity": open_table.run(table, sensitive, label="the table as it is")}
        if second is not None:
            for name, tested, called in (
                ("second learner", self.anonymiser, label),
                ("identity, second learner", identity, "the table as it is"),
            ):
                again = self._with(anonymiser=tested, learner=second, n_records=few, **common)
                out[name] = again.run(table, sensitive, label=called)
        return out

    def _with(self, **changes: Any) -> DifferentialInferenceTest:
        return DifferentialInferenceTest(**{**self.get_params(deep=False), **changes})


class _Setting:
    """The checked question: table, sensitive column, learner, encoding and distance."""

    def __init__(self, original: Table, table: Table, sensitive: str, test: DifferentialInferenceTest) -> None:
        self.original, self.table, self.sensitive = original, table, sensitive
        self.learner = BernoulliNB() if test.learner is None else test.learner
        self.encoding = parse_encoding(test.encoding, OWNER)
        kinds = pd.unique(table.frame[sensitive].astype(object))
        known = sorted((v for v in kinds if not pd.isna(v)), key=lambda v: (type(v).__name__, v))
        self.values: tuple[Any, ...] = (*known, None) if table.frame[sensitive].isna().any() else tuple(known)
        self.specs = tuple(make_specs(table, self.encoding, test.quantiles))
        self.prior = Prior.of(test.prior, self.values, len(original), OWNER)
        self.measure = Distance(test.distance, test.ground, test.scale, self.values, table.schema[sensitive], OWNER)

    @classmethod
    def of(cls, test: DifferentialInferenceTest, table: Table, sensitive: str | None) -> _Setting:
        """Check everything that does not take a run."""
        _check(test, table)
        if sensitive is None:
            named = table.schema.names("sensitive")
            if len(named) != 1:
                hint = "Name one with sensitive='...'."
                raise bad_parameter(OWNER, "sensitive", "given: the schema has not exactly one", named, hint)
            sensitive = named[0]
        if table.schema[sensitive].role in ("identifier", "quasi"):
            must = "a column that is neither identifier nor quasi-identifier"
            raise bad_parameter(OWNER, "sensitive", must, sensitive)
        if test.groups is not None:
            table = group_numbers(table, sensitive, test.groups, OWNER)
        if table.frame[sensitive].nunique(dropna=False) < 2:
            raise bad_parameter(OWNER, "sensitive", "a column with at least two values", sensitive)
        before = parse_encoding(test.encoding, OWNER)[0] == "quantiles-before"
        return cls(table, quantiles_before(table, test.quantiles) if before else table, sensitive, test)

    def drawn(self, n_records: int | None, random_state: int) -> Ints:
        """Who is tested, in the order of the draw."""
        order = generator(random_state).permutation(len(self.table)).astype(np.int64)
        return order if n_records is None else order[:n_records]

    def job(self, test: DifferentialInferenceTest, anonymiser: Any, *, random: bool, whole: Any) -> Job:
        """What testing one person takes."""
        names = [s.column.name for s in self.specs]
        published = None
        if whole is not None:
            published = read_published(whole, names, self.sensitive, self.values, self.table.schema)
        model = None
        if published is not None and not random and "tf" not in {s.how for s in self.specs}:
            features, _ = published.features(self.table.frame.iloc[[0]], self.specs)
            model = trained(self.learner, features, published.secret, None, published.weight)
        return Job(
            self.table, anonymiser, self.learner, self.sensitive, self.values, self.specs, self.measure, random,
            published, model, self.prior,
        )  # fmt: skip


def _check(test: DifferentialInferenceTest, table: Table) -> None:
    if not isinstance(table, Table):
        hint = "Build one with Table.from_frame(df, quasi_identifiers=[...]) or Table.read(path, schema=...)."
        raise bad_parameter(OWNER, "table", "a Table", type(table).__name__, hint)
    if not table.schema.names("quasi"):
        raise SchemaError(f"{OWNER} needs quasi-identifiers. Give columns the role 'quasi'.")
    if len(table) < 3:
        raise bad_parameter(OWNER, "table", "at least three rows long", f"{len(table)} rows")
    if not callable(test.anonymiser) and not (hasattr(test.anonymiser, "fit") and hasattr(test.anonymiser, "protect")):
        must = "a table protector, or a function from a Table to a Release or to a DataFrame of counts"
        raise bad_parameter(OWNER, "anonymiser", must, type(test.anonymiser).__name__)
    for name, least in (("n_records", 1), ("repeats", 1), ("quantiles", 2), ("beside", 0)):
        value = getattr(test, name)
        if value is None and name in ("n_records", "repeats"):
            continue
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
            raise bad_parameter(OWNER, name, f"a whole number of at least {least}", value)
    if test.path not in ("auto", "fast", "general"):
        raise bad_parameter(OWNER, "path", "one of ('auto', 'fast', 'general')", test.path)
    for name in ("learner", "second"):
        value = getattr(test, name)
        if isinstance(value, str) and (name, value) == ("second", "tree"):
            continue
        if value is not None and not (hasattr(value, "fit") and hasattr(value, "predict_proba")):
            must = "a scikit-learn classifier with predict_proba"
            raise bad_parameter(OWNER, name, must, type(value).__name__)


def _name(anonymiser: Any) -> str:
    if hasattr(anonymiser, "get_params"):
        return " ".join(str(anonymiser).split())
    return str(getattr(anonymiser, "__qualname__", type(anonymiser).__name__))
