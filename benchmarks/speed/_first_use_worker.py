"""One case of first_use.py in a process of its own: what it took, as the last line of its output, in JSON."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

SINGLES = 200
_FEWER = {"cfk-grasp": 40}  # what takes most of a second each
_LATER = 10  # answers before those that count: lazy imports, and code that is read from the cache
_RUN = "from countervail.cli import main; main()"


def first_use(name: str) -> dict[str, Any]:
    """CPU seconds of the import, of loading the packages that everything uses, and of the use itself."""
    start = time.process_time()
    import countervail  # noqa: F401

    ready = time.process_time()
    from countervail.cli.warm import count_compiled
    from countervail.study.first_uses import first_uses

    first_uses()
    loaded = time.process_time()
    _, functions = count_compiled(name)
    end = time.process_time()
    return {"import": ready - start, "load": loaded - ready, "cpu": end - loaded, "functions": functions}


def command(words: str) -> dict[str, Any]:
    """CPU seconds of a command and all its processes, its exit code, and its last words where it failed."""
    given = [sys.executable, "-W", "ignore", "-c", _RUN, *words.split()]
    done = subprocess.run(given, capture_output=True, text=True, check=False, env=os.environ)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = (done.stderr.strip().splitlines() or [""])[-1] if done.returncode else ""
    return {"cpu": used.ru_utime + used.ru_stime, "exit": done.returncode, "said": said}


class Timed:
    """A model that knows how long it was asked."""

    def __init__(self, model: Any) -> None:
        self.model, self.classes_, self.seconds = model, model.classes_, 0.0

    def predict(self, frame: Any) -> Any:
        """Labels."""
        return self._timed(self.model.predict, frame)

    def predict_proba(self, frame: Any) -> Any:
        """Scores."""
        return self._timed(self.model.predict_proba, frame)

    def _timed(self, call: Callable[[Any], Any], frame: Any) -> Any:
        start = time.process_time()
        said = call(frame)
        self.seconds += time.process_time() - start
        return said


def row_cases() -> dict[str, Callable[[], Any]]:
    """What answers single rows, by name, with the settings that search in another way."""
    import countervail as cv
    from countervail import registry
    from countervail.explain.nice import REWARDS

    kinds = {**registry.explainers(), **registry.explanation_protectors()}
    out: dict[str, Callable[[], Any]] = {n: k for n, k in kinds.items() if registry.fact(k, "extra") is None}
    out.update({f"nice-{r}": lambda r=r: cv.NICE(r) for r in REWARDS[1:]})  # type: ignore[misc]
    out.update({f"cfk-{s}": lambda s=s: cv.CFK(k=10, search=s) for s in ("exact", "grasp")})  # type: ignore[misc]
    return {**out, "cfk": lambda: cv.CFK(k=10), "cfk-none": lambda: cv.CFK(k=10, reward="none")}


def single_rows(name: str) -> dict[str, Any]:
    """CPU milliseconds beyond the model of one answer after the other, about refused people who were held out."""
    from countervail.model import train_forest
    from countervail.study.first_uses import bundled_rows

    table, others = bundled_rows(1000).split(test_size=0.4, random_state=0)
    model = Timed(train_forest(table, trees=20))
    asks = others.features[model.predict(others.features) == "bad"]
    fitted, singles = row_cases()[name]().fit(table, model), _FEWER.get(name, SINGLES)
    for i in range(_LATER):
        fitted.explain(asks.iloc[i : i + 1])
    ours, models = [], []
    for i in range(singles):
        row = asks.iloc[i % len(asks) :][:1]
        model.seconds, start = 0.0, time.process_time()
        fitted.explain(row)
        models.append(model.seconds)
        ours.append(time.process_time() - start - model.seconds)
    ours.sort()
    return {
        "n": singles,
        "people": len(asks),
        "median_ms": 1e3 * ours[singles // 2],
        "p99_ms": 1e3 * ours[min(singles - 1, -(-99 * singles // 100) - 1)],
        "model_ms": 1e3 * sum(models) / singles,
    }


def warm_cases() -> dict[str, Callable[[], Callable[[], object]]]:
    """Warm goals by name: each makes what it needs, and gives back what is timed."""
    import numpy as np
    import pandas as pd

    import countervail as cv
    from countervail.model import train_forest

    def cfk(data: str, k: int) -> Callable[[], object]:
        table, _ = cv.load(data).split(test_size=0.4, random_state=0)
        model = train_forest(table)
        return lambda: cv.CFK(k=k).fit(table, model)

    def patterns() -> Callable[[], object]:
        table = cv.load("adult").take(np.arange(5000))
        return lambda: cv.KCommonPatterns(k=5).fit(table).protect(table)

    def million(rows: int = 1_000_000, mutation: float = 0.15) -> Callable[[], object]:
        """German credit resampled, with a share of each quasi-identifier's values dealt out anew."""
        rng, german = np.random.default_rng(0), cv.load("german_credit")
        frame = german.frame.iloc[rng.integers(0, len(german), rows)].reset_index(drop=True)
        for name in german.schema.names("quasi"):
            dealt = rng.random(rows) < mutation
            frame.loc[dealt, name] = frame[name].to_numpy()[rng.permutation(rows)][dealt]
        big = cv.Table.from_frame(frame, schema=german.schema)
        return lambda: cv.CFK(k=10).fit(big, lambda f: np.where(f["duration"] < 24, "good", "bad"))

    def continuous(rows: int = 1_000_000) -> Callable[[], object]:
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(rows, 8)), columns=[f"x{j}" for j in range(8)])
        schema = cv.Schema(tuple(cv.Column(str(c), "numeric", "quasi") for c in frame.columns))

        def run() -> object:
            table = cv.Table(frame, schema)
            return cv.Mondrian(k=10).fit(table).protect(table).to_frame()

        return run

    return {
        "cfk-german-10": lambda: cfk("german_credit", 10),
        "cfk-german-20": lambda: cfk("german_credit", 20),
        "cfk-adult-10": lambda: cfk("adult", 10),
        "cfk-1m": million,
        "k-common-adult-5000": patterns,
        "mondrian-continuous-1m": continuous,
    }


def warm(name: str, repeats: int = 3) -> dict[str, Any]:
    """The least CPU seconds of some repeats, with everything compiled."""
    job = warm_cases()[name]()
    job()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return {"cpu": min(times), "range": [min(times), max(times)]}


KINDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "use": first_use,
    "command": command,
    "rows": single_rows,
    "warm": warm,
}


def main() -> None:
    """Measure the case of this process."""
    warnings.simplefilter("ignore")
    kind, name = sys.argv[1:3]
    if kind in ("rows", "warm"):
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            found = KINDS[kind](name)
    else:
        found = KINDS[kind](name)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
