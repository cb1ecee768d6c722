"""Two worlds with the draw fixed take the same work: how long an answer takes tells nothing of the table either."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from dp_worlds import EXPLAINERS, FEWER, MANY, alike, fix_chance, fix_the_draw, holes, others, refused, told, world
from work_meter import WorkMeter

import countervail as cv
from countervail import registry
from countervail.core._kernels import kernel
from countervail.core.guarantee import DifferentialPrivacy
from countervail.core.rng import generator
from countervail.model import Remote, load_model, save_model
from countervail.protect._fitted import live_table
from countervail.protect.dp import pool, private_logistic, randomiser_kernels
from countervail.protect.dp.randomiser import Randomiser
from countervail.testing import small_model, small_table

pytestmark = pytest.mark.filterwarnings("ignore:PrivateSynthetic. delta is not small")

ASKED = small_table(4, seed=1)
# The function of each that looks at records, and lets nothing out but a draw.
DRAWS = {
    cv.PrivateSynthetic: (cv.PrivateSynthetic, "_drawn"),
    cv.PrivateHistograms: (cv.PrivateHistograms, "_noisy"),
    cv.DPTableExplainer: (cv.DPTable, "_noisy"),
}
SOME = {name: made for name, made in EXPLAINERS.items() if "large" not in name}
SOME["neighbours, counted"] = lambda: cv.PrivateNeighbours(1.0, neighbours=4, ledger=cv.Ledger("people", epsilon=100))
SOME["synthetic, kept"] = lambda: cv.PrivateSynthetic(1.0, rows=200, ledger=cv.Ledger("people", epsilon=9, delta=1e-5))
OTHERS = [alike, holes, refused, others]
STEPWISE = {"nearest_kernel"}  # the only kernel that is given records for an answer


def one_replaced():
    """A neighbour: one person is another."""
    frame = MANY.frame.copy()
    frame.iloc[7, frame.columns.get_indexer(["age", "city", "income", "ok"])] = [80, "c", 140.0, "yes"]
    return world(frame)


def one_gone():
    """A neighbour: one person is not there."""
    return world(MANY.frame.drop(index=MANY.frame.index[7]))


class Unreadable:
    """Rows that nobody may look at."""

    def __getattribute__(self, name):
        raise AssertionError(f"the table was read: {name}")


class HeardModel:
    """The small model, listened to."""

    def __init__(self, meter):
        self.meter = meter

    def __call__(self, frame):
        self.meter.given("the model", frame)
        with self.meter.deaf():
            return small_model(frame)

    def __reduce__(self):
        return the_model, ()


def the_model():
    return small_model


def use(protector, model, path):
    """All that is done with a fitted protector but measuring it."""
    told(protector.explain(ASKED))
    protector.explain(ASKED.features.iloc[0])
    str(protector.guarantee()), repr(protector)
    if protector.keeps_draw and protector.ledger is None:  # a ledger in memory has no copy
        pickle.loads(pickle.dumps(protector)).explain(ASKED)
    if isinstance(protector, cv.DPTableExplainer):
        table = pickle.loads(pickle.dumps(protector.noisy_)) if protector.ledger is None else protector.noisy_
        table.protect().to_json(), protector.noisy_.protect().to_frame().to_csv(), protector.noisy_.labelled(model)
    if isinstance(protector, cv.PrivateSynthetic):
        protector.protect().to_frame(), protector.labelled()
        protector.save(path)
        cv.load_protector(path, model=model).explain(ASKED)


@pytest.fixture
def worlds(monkeypatch, tmp_path):
    """The work that a protector does once it has drawn, in the world of a table: `worlds(made, table)`."""
    fix_the_draw(monkeypatch)
    fix_chance(monkeypatch)
    known = set()

    def work(made, table):
        with monkeypatch.context() as patch:
            meter = WorkMeter(__file__, stepwise=STEPWISE)
            meter.listens_to_kernels(patch)
            meter.skips(patch, cv.NoisyCounterfactual, "_inner")
            protector, model = made(), HeardModel(meter)
            drawn = next((DRAWS[kind] for kind in type(protector).__mro__ if kind in DRAWS), None)
            if drawn is not None:
                meter.begins_after(patch, *drawn)
            protector.fit(table, model)
            if isinstance(protector, cv.NoisyCounterfactual):
                protector.explain(ASKED)  # what its explainer leaves behind in pandas' memory is its own time, too
            with meter:
                use(protector, model, tmp_path / "private.json")
            return meter.done

    def warm(made, table):
        if made not in known:  # compiled, imported and remembered by the process
            known.add(made)
            use(made().fit(MANY, small_model), small_model, tmp_path / "private.json")
            work(made, MANY)
        return work(made, table)

    return warm


def first_difference(one, other):
    pairs = [(a, b) for a, b in zip(one, other) if a != b]
    return pairs[0] if pairs else (len(one), len(other))


def test_every_private_protector_is_listened_to():
    private = {*registry.explanation_protectors().values(), *registry.table_protectors().values()}
    private = {kind for kind in private if isinstance(kind().guarantee(), DifferentialPrivacy)}
    assert private - {cv.DPTable} == {type(made()) for made in SOME.values()}


@pytest.mark.parametrize("made", SOME.values(), ids=SOME)
def test_the_work_for_answers_depends_on_the_draw_and_the_question_alone(worlds, made):
    first = worlds(made, MANY)
    assert len(first) > 100
    # Who draws for each answer looks at every record: how many there are is not hidden, and the page says so.
    number_shows = not isinstance(made(), cv.PrivateSynthetic | cv.PrivateHistograms | cv.NoisyCounterfactual)
    for other in (one_replaced, *OTHERS, *(() if number_shows else (one_gone, FEWER[1]))):
        found = worlds(made, other())
        assert found == first, (other, first_difference(first, found))


def test_no_table_is_read_once_it_is_drawn(monkeypatch, tmp_path):
    """Of one draw only: whatever would read the table raises, and nothing does."""
    fix_the_draw(monkeypatch)
    fix_chance(monkeypatch)
    for name in ("synthetic", "synthetic, typical", "histograms", "table"):
        said = []
        for unreadable in (False, True):
            table = small_table(300)
            protector = EXPLAINERS[name]().fit(table, small_model)
            if unreadable:
                object.__setattr__(table, "frame", Unreadable())
            use(protector, small_model, tmp_path / "private.json")
            said.append(protector.explain(ASKED).to_json())
            if isinstance(protector, cv.DPTableExplainer):
                said[-1] += protector.noisy_.protect().to_json()
        assert said[0] == said[1]


def test_noise_takes_the_same_work_whatever_it_is_and_is_added_to():
    """What `fix_the_draw` replaces where noise is drawn for each answer."""
    sizes, rng, seen = [101, 3, 7], generator(0), []
    randomiser = Randomiser.of(sizes, [True, False, True], [Fraction(1, 3)] * 3)
    given = [getattr(randomiser, n) for n in ("sizes", "windows", "inside", "outside")]
    for _ in range(4):
        codes = np.stack([rng.integers(0, m, 50) for m in sizes], axis=1)
        words = rng.integers(0, 1 << 62, (50, 3)).astype(np.uint64) << np.uint64(1)  # none is beyond the total
        out, open_ = np.zeros_like(codes), np.ones(codes.shape, dtype=bool)
        with WorkMeter() as meter:
            left = randomiser_kernels.randomise.py_func(codes, words, *given, out, open_)
        assert left == 0 and not open_.any()
        seen.append((meter.done, out.tolist()))
    assert all(done == seen[0][0] for done, _ in seen) and len({str(out) for _, out in seen}) == 4


@pytest.mark.parametrize("other", [one_replaced, one_gone, alike, refused, FEWER[1]])
def test_a_private_model_takes_the_same_work_once_it_is_trained(monkeypatch, tmp_path, other):
    fix_the_draw(monkeypatch)
    seen = []
    for table in (MANY, MANY, other()):
        with monkeypatch.context() as patch:
            meter = WorkMeter()
            meter.listens_to_kernels(patch)
            meter.begins_after(patch, private_logistic, "trained")
            model = cv.train_private_logistic(table, 1.0)
            with meter:
                save_model(model, tmp_path / "model.skops")
                load_model(tmp_path / "model.skops").predict_proba(ASKED.features)
            seen.append(meter.done)
    assert seen[1] == seen[2] and len(seen[1]) > 10, first_difference(seen[1], seen[2])


# ---------------------------------------------------------------- whoever takes longer for somebody is caught


def there(protector):
    """How many people are as the one whom a neighbour has instead of another."""
    table = live_table(protector)
    return 0 if table is None else int(((table.frame["age"] == 80) & (table.frame["income"] == 140.0)).sum())


class LoopsForSomebody(cv.PrivateSynthetic):
    """Does nothing for a while where somebody is in the table."""

    def _explained(self, rows, constraints, progress):
        for _ in range(20 * there(self)):
            pass
        return super()._explained(rows, constraints, progress)


class AsksForSomebody(cv.PrivateSynthetic):
    """Asks the model once more where somebody is in the table."""

    def _explained(self, rows, constraints, progress):
        self.public_.decide(np.tile(self.public_.grid.default, (1 + there(self), 1)))
        return super()._explained(rows, constraints, progress)


class SortsForSomebody(cv.PrivateSynthetic):
    """Sorts some numbers more where somebody is in the table, in compiled code."""

    def _explained(self, rows, constraints, progress):
        np.arange(10 + there(self)).sort()
        return super()._explained(rows, constraints, progress)


class SavesForSomebody(cv.PrivateSynthetic):
    """Writes a file twice where somebody is in the table."""

    def save(self, path):
        for _ in range(1 + there(self)):
            super().save(path)


@kernel
def hasty_kernel(records, classes, wanted, distances, k):
    """The nearest records by a search that gives a record up as soon as it is too far."""
    out, dist = np.full((len(wanted), k), -1, np.int64), np.empty(k, np.int64)
    for i in range(len(wanted)):
        held = 0
        for r in range(len(records)):
            s = np.int64(0)
            for j in range(records.shape[1]):
                s += distances[i, j, records[r, j]]
                if held == k and s >= dist[k - 1]:
                    break
            if not wanted[i, classes[r]] or (held == k and s >= dist[k - 1]):
                continue
            b = held if held < k else k - 1
            while b > 0 and s < dist[b - 1]:
                dist[b], out[i, b] = dist[b - 1], out[i, b - 1]
                b -= 1
            dist[b], out[i, b] = s, r
            held = min(held + 1, k)
    return out


@pytest.mark.parametrize("mutant", [LoopsForSomebody, AsksForSomebody, SortsForSomebody, SavesForSomebody])
def test_whoever_takes_longer_for_somebody_is_caught(worlds, mutant):
    def made():
        return mutant(1.0, rows=50)

    first = worlds(made, MANY)
    assert worlds(made, MANY) == first
    assert worlds(made, one_replaced()) != first


def test_a_search_for_neighbours_that_stops_early_is_caught(worlds, monkeypatch):
    made = SOME["neighbours"]
    right = made().fit(MANY, small_model).explain(ASKED).to_json()
    monkeypatch.setattr(pool, "nearest_kernel", hasty_kernel)
    monkeypatch.setattr(hasty_kernel.py_func, "__name__", "nearest_kernel")
    assert made().fit(MANY, small_model).explain(ASKED).to_json() == right  # the same answers, by less work
    assert worlds(made, one_replaced()) != worlds(made, MANY)


class Nearby(Remote):
    """A model behind HTTP without the way there: what is asked is listed, what is remembered is not asked."""

    def __init__(self):
        super().__init__("https://models.example.org/small", labels=["no", "yes"])
        self.asked = []

    def _ask(self, columns, rows):
        self.asked.append(rows)
        return [tuple(scores) for scores in small_model(pd.DataFrame(rows, columns=columns)).tolist()]


@pytest.mark.parametrize("name", ["synthetic", "histograms", "neighbours"])
def test_a_model_behind_http_is_asked_alike_whoever_is_in_the_table(monkeypatch, name):
    """What it remembered of the fit would be answered without a request, and so sooner: was she in the table?"""
    fix_the_draw(monkeypatch)
    fix_chance(monkeypatch)
    she = {"age": 41, "city": "a", "level": "low", "ill": "no", "income": 30.0}
    frame = MANY.frame.copy()
    frame.loc[frame.index[7], list(she)] = list(she.values())

    def asked():
        found = []
        for table in (MANY, world(frame)):
            model = Nearby()
            protector = EXPLAINERS[name]().fit(table, model)
            model.asked.clear()
            protector.explain(pd.DataFrame([she]))
            found.append(model.asked)
        return found

    without, with_her = asked()
    assert without == with_her and any(list(she.values()) in rows for rows in without)
    monkeypatch.setattr(Remote, "forget", lambda self: None)
    without, with_her = asked()
    assert without != with_her  # the control
