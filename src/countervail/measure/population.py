"""How identifiable people are in the population that a table was sampled from: models of it, or a table of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares, minimize
from scipy.special import digamma, gammaln, hyp2f1
from scipy.stats import hypergeom

from countervail.core.arrays import Floats, Ints, number_columns, number_rows
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.people import count_people, people_of, person_columns
from countervail.core.stats import plain_json
from countervail.core.table import Table

_FEW = 0.1  # a sampling fraction from which on Dankar et al. do not trust Pitman's model
_CLOSE = 1e-6  # of the counts that the SNB model must reproduce


@dataclass(frozen=True, slots=True)
class Uniques:
    """How many people of a population of `size` are alone in it with their quasi-identifiers, as models estimate it.

    A model that does not fit gives None. `chosen` is the model of Dankar et al.'s rule, `estimate` its number and
    `share` that number by `size`. `journalist` is the mean chance of finding a person of the sample in the population,
    `highest` the greatest one, `expected` how many would be found if everybody was looked for.
    """

    size: int
    people: int
    fraction: float
    sample_uniques: int
    pitman: float | None
    zayatz: float | None
    snb: float | None
    chosen: str
    estimate: float
    share: float
    journalist: float
    highest: float
    expected: float

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return plain_json(self)


@dataclass(frozen=True, slots=True)
class KMap:
    """A table beside a population that is known: how many of its people each one of the table could be.

    `least` is the k of k-map: every combination of the table fits so many people of the population. Shares are of the
    people of the table. `absent` people have a combination that the population lacks: it does not hold the table.
    """

    size: int
    people: int
    k: int
    least: int
    unique: float
    below_k: float
    journalist: float
    highest: float
    absent: int

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return plain_json(self)


def population_uniques(table: Table, size: int, *, person: str | None = None) -> Uniques:
    """Estimate uniqueness in a population of `size` people, of whom the table's are a random sample.

    Notes
    -----
    *Threat model*: a journalist who has a register of the population and looks for anybody of the table in it, without
    knowing who is in the table. Models assume a simple random sample; where people were chosen by what is in the table,
    estimates mean nothing. `journalist` follows from Pitman's formula (Benedetti and Franconi's risk is its case of
    alpha and theta 0, and far too low where many people are alone); where that does not fit, it is the chance of
    somebody who knows who is in the table, which is no less.

    References
    ----------
    Pitman: Random discrete distributions invariant under size-biased permutation (1996), in the form of Hoshino:
    Applying Pitman's sampling formula to microdata disclosure risk assessment (2001). Zayatz: Estimation of the number
    of unique population elements using a sample (1991). Chen, Keller-McNulty: Estimation of identification disclosure
    risk in microdata (1998; SNB). Dankar, El Emam, Neisa, Roffey: Estimating the re-identification risk of clinical
    data sets (2012; which model when). Benedetti, Franconi: Statistical and technological solutions for controlled data
    dissemination (1998).

    Examples
    --------
    >>> import countervail as cv
    >>> found = cv.measure.population_uniques(cv.load("german_credit"), 20_000)
    >>> found.chosen, found.sample_uniques
    ('pitman', 837)
    """
    sizes = _class_sizes(table, person, "population_uniques")
    n = int(sizes.sum())
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < n:
        raise bad_parameter(
            "population_uniques", "size", f"a whole number of at least the people of the table, {n}", size
        )
    fraction, alone = n / size, int((sizes == 1).sum())
    pitman, zayatz, snb = (model(sizes, int(size)) for model in (pitman_uniques, zayatz_uniques, snb_uniques))
    chosen, estimate = _decide(fraction, pitman, zayatz, snb)
    risk, fitted = 1 / sizes.astype(float), fit_pitman(sizes)
    if fitted is not None:
        alpha, theta = fitted
        risk = individual_risk(sizes, (n + theta) / (size + theta), alpha)
    return Uniques(
        int(size),
        n,
        fraction,
        alone,
        pitman,
        zayatz,
        snb,
        chosen,
        estimate,
        estimate / size,
        float(risk @ sizes) / n,
        float(risk.max()),
        float(risk @ sizes),
    )


def k_map(table: Table, population: Table, *, k: int = 10, person: str | None = None) -> KMap:
    """Count for each person of the table who of a population has the same quasi-identifiers.

    Of a person with several rows the row counts that fits the fewest; people of the population count once for each
    combination that one of their rows has.

    Examples
    --------
    >>> import countervail as cv
    >>> everybody = cv.load("german_credit")
    >>> found = cv.measure.k_map(everybody.take(range(200)), everybody)
    >>> found.least, found.absent
    (1, 0)
    """
    quasi = table.schema.names("quasi")
    if not quasi:
        raise SchemaError("No quasi-identifier is declared. Give columns the role 'quasi' in the schema.")
    if missing := [n for n in quasi if n not in population.frame.columns]:
        raise SchemaError(f"The population lacks the quasi-identifiers {missing} of the table.")
    if k < 1:
        raise bad_parameter("k_map", "k", "a whole number of at least 1", k)
    both = pd.concat([t.frame[quasi].astype(object) for t in (table, population)], ignore_index=True)
    key, mine, theirs = number_rows(number_columns(both, quasi)), _whose(table, person), _whose(population, person)
    found = count_people(key[len(mine) :], theirs)
    fitting = np.pad(found, (0, int(key.max(initial=-1)) + 1 - len(found)))[key[: len(mine)]]
    people = int(mine.max(initial=-1)) + 1
    counts, known = np.full((2, people), len(theirs) + 1)
    np.minimum.at(counts, mine, fitting)
    np.minimum.at(known, mine[fitting > 0], fitting[fitting > 0])
    there = known <= len(theirs)
    chance: Floats = 1 / known
    return KMap(
        int(theirs.max(initial=-1)) + 1,
        people,
        k,
        int(counts.min()),
        float((counts == 1).mean()),
        float((counts < k).mean()),
        float(chance[there].mean()) if there.any() else 1.0,
        float(chance[there].max()) if there.any() else 1.0,
        int((counts == 0).sum()),
    )


def pitman_uniques(sizes: Ints, population: int) -> float | None:
    """The expected number of classes of one person in a population under Pitman's sampling formula, fitted to a sample.

    None where the likelihood has no maximum inside, as where everybody is alone.
    """
    if not (sizes == 1).any():
        return 0.0
    fitted = fit_pitman(sizes)
    if fitted is None:
        return None
    alpha, theta = fitted
    log_share = gammaln(theta + 1) - gammaln(theta + alpha)
    log_share += gammaln(theta + alpha + population - 1) - gammaln(theta + population)
    return float(min(population * np.exp(log_share), population))


def fit_pitman(sizes: Ints) -> tuple[float, float] | None:
    """Alpha and theta of Pitman's sampling formula by maximum likelihood; None where there is no maximum inside."""
    n, u = int(sizes.sum()), len(sizes)
    if u in (1, n):
        return None
    value, count = np.unique(sizes, return_counts=True)

    def minus_log_likelihood(at: Floats) -> tuple[float, Floats]:
        alpha = 1 / (1 + np.exp(-at[0]))
        theta = np.exp(at[1]) - alpha
        # Sums of log(theta + i alpha), log(theta + i) and log(j - alpha) as differences of log-gammas.
        ratio = theta / alpha
        new = (u - 1) * np.log(alpha) + gammaln(ratio + u) - gammaln(ratio + 1)
        all_ = gammaln(theta + n) - gammaln(theta + 1)
        joined = count @ (gammaln(value - alpha) - gammaln(1 - alpha))
        by_ratio = digamma(ratio + u) - digamma(ratio + 1)
        by_theta = by_ratio / alpha - digamma(theta + n) + digamma(theta + 1)
        by_alpha = (u - 1) / alpha - by_ratio * theta / alpha**2 - count @ (digamma(value - alpha) - digamma(1 - alpha))
        slope = np.array([(by_alpha - by_theta) * alpha * (1 - alpha), by_theta * (theta + alpha)])
        return -float(new - all_ + joined), -slope

    start = np.array([0.0, np.log(max(u / 2, 1.0))])
    found = minimize(minus_log_likelihood, start, jac=True, method="L-BFGS-B", bounds=[(-20, 20), (-20, 40)])
    alpha = 1 / (1 + np.exp(-found.x[0]))
    theta = np.exp(found.x[1]) - alpha
    if not np.isfinite(found.fun) or abs(found.x[0]) > 19.9 or found.x[1] > 39.9:
        return None
    return float(alpha), float(theta)


def zayatz_uniques(sizes: Ints, population: int) -> float | None:
    """Sample uniques times the chance that one is alone in the population, whose classes are sized as the sample's.

    Examples
    --------
    >>> round(zayatz_uniques(np.array([1, 1, 2]), 8), 4)  # of 8 people 4 were drawn: 1/2 against (2 * 1/2 + 4/7) / 3
    2.5455
    """
    n, alone = int(sizes.sum()), int((sizes == 1).sum())
    if alone == 0:
        return 0.0
    value, count = np.unique(sizes, return_counts=True)
    one_of = hypergeom.pmf(1, population, value, n)
    drawn_alone = float(count @ one_of)
    if drawn_alone <= 0:
        return None
    kept = alone * (n / population) / drawn_alone
    return float(alone * kept / (n / population))


def snb_uniques(sizes: Ints, population: int) -> float | None:
    """Classes of one person where class sizes are one more than negative binomial; None where no parameters fit.

    The number of classes of the population is Shlosser's modified estimate; the parameters give the numbers of classes
    of one and of two people that were seen.
    """
    n, alone, pairs = int(sizes.sum()), int((sizes == 1).sum()), int((sizes == 2).sum())
    if alone == 0:
        return 0.0
    f = n / population
    if f >= 1 or pairs == 0:
        return float(alone) if f >= 1 else None
    classes = shlosser_classes(sizes, f)

    def misses(at: Floats) -> Floats:
        alpha, beta = np.exp(at[0]), 1 / (1 + np.exp(-at[1]))
        hidden = (1 - f) * (1 - beta)
        empty = np.exp(alpha * (np.log(beta) - np.log1p(-hidden)))
        one = classes * f * empty * (1 + alpha * hidden / (1 - hidden))
        two = classes * f**2 / 2 * alpha * (1 - beta) * empty * (2 - (1 - alpha) * hidden) / (1 - hidden) ** 2
        return np.array([one / alone - 1, two / pairs - 1])

    best = None
    for start in ((0.0, 0.0), (-2.0, -2.0), (-2.0, -6.0), (2.0, 2.0), (-4.0, -4.0)):
        found = least_squares(misses, start, bounds=([-30, -30], [15, 30]))
        if best is None or found.cost < best.cost:
            best = found
    if best is None or np.abs(best.fun).max() > _CLOSE:
        return None
    alpha, beta = np.exp(best.x[0]), 1 / (1 + np.exp(-best.x[1]))
    return float(min(classes * beta**alpha, population))


def shlosser_classes(sizes: Ints, fraction: float) -> float:
    """Haas and Stokes' modified Shlosser estimate of the number of classes in the population."""
    value, count = np.unique(sizes, return_counts=True)
    f, alone = fraction, float(count[value == 1].sum())
    seen = count @ (value * f**2 * (1 - f**2) ** (value - 1))
    unseen = count @ ((1 - f) ** value * ((1 + f) ** value - 1))
    missed = count @ ((1 - f) ** value) / (count @ (value * f * (1 - f) ** (value - 1)))
    return float(len(sizes) + alone * (seen / unseen) * missed**2)


def individual_risk(sizes: Ints, fraction: float, alpha: float = 0.0) -> Floats:
    """For each class of the sample, the mean of 1 / F where F, its size in the population, is negative binomial.

    A class of f people has F = f + X, and X counts failures before f - alpha successes of chance `fraction`. With alpha
    0 it is Benedetti and Franconi's risk; with Pitman's alpha, and (n + theta) / (N + theta) for the fraction, it is
    the limit of his formula for classes that are a small part of the sample.

    Examples
    --------
    >>> individual_risk(np.array([1, 2, 50]), 0.1).round(4).tolist()  # 1: 0.1 / 0.9 * log(10)
    [0.2558, 0.0827, 0.002]
    """
    if fraction >= 1:
        return 1 / sizes.astype(float)
    f = sizes.astype(float)
    # pi**(f - a) / f * F(f - a, f; f + 1; 1 - pi), which would underflow, by Euler's transformation.
    risk: Floats = fraction / f * hyp2f1(1.0 + alpha, 1.0, f + 1, 1 - fraction)
    return np.minimum(risk, 1.0)


def _decide(fraction: float, pitman: float | None, zayatz: float | None, snb: float | None) -> tuple[str, float]:
    """Dankar et al.'s rule: Pitman for small samples, else the smaller of SNB and Zayatz; Zayatz where others fail."""
    if fraction <= _FEW and pitman is not None:
        return "pitman", pitman
    if fraction > _FEW and snb is not None and (zayatz is None or snb <= zayatz):
        return "snb", snb
    return "zayatz", zayatz if zayatz is not None else float("nan")


def _class_sizes(table: Table, person: str | None, owner: str) -> Ints:
    """Sizes of the classes of people with equal quasi-identifiers, each person once."""
    quasi = table.schema.names("quasi")
    if not quasi:
        raise SchemaError("No quasi-identifier is declared. Give columns the role 'quasi' in the schema.")
    if not len(table):
        raise bad_parameter(owner, "table", "a table with rows", "none")
    return np.bincount(number_rows(number_columns(_once(table, person), quasi)))


def _whose(table: Table, person: str | None) -> Ints:
    """The number of the person of each row."""
    named = person_columns(table) if person is None else [table.schema[person].name]
    return people_of(table.frame, named)


def _once(table: Table, person: str | None) -> pd.DataFrame:
    """One row for each person: the first, where somebody has several."""
    who = _whose(table, person)
    return table.frame.iloc[np.unique(who, return_index=True)[1]].reset_index(drop=True)
