"""Sessions of Spark: which are taken, how one is started, and what holds while a query runs."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import unquote

from countervail.core import errors
from countervail.core.errors import CountervailError, DataNotFoundError, ParameterError, SchemaError, bad_parameter

_VERSION: Final = "4"
# Answers must not depend on how a session happens to be set.
_PINNED: Final = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2048",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


def usable_session(session: Any) -> Any:
    """A session that was given, if it is one of Spark 4."""
    version = getattr(session, "version", None)
    if not isinstance(version, str) or not hasattr(session, "sql"):
        raise bad_parameter("Table.scan", "session", "a session of Spark", type(session).__name__)
    if version.partition(".")[0] != _VERSION:
        raise bad_parameter("Table.scan", "session", f"a session of Spark {_VERSION}", f"Spark {version}")
    return session


def started(master: str | None, *, threads: int | None, memory: int) -> Any:
    """A session for a master: on this machine unless another is named; `sc://host` is a Connect server."""
    try:
        with quiet():
            from pyspark.sql import SparkSession
    except ImportError:
        hint = "Install it: pip install 'countervail[spark]'; it needs Java 17."
        raise bad_parameter("Table.scan", "engine", "one that is installed", "spark", hint) from None
    with quiet():
        if master is not None and master.startswith("sc://"):
            try:
                return usable_session(SparkSession.builder.remote(master).getOrCreate())
            except CountervailError:
                raise
            except Exception as error:  # noqa: BLE001 - Spark's own texts are pages long
                raise _unreachable(master, error) from None
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        place = master or f"local[{threads or '*'}]"
        builder = SparkSession.builder.master(place).appName("countervail")
        for name, value in _settings(place, memory).items():
            builder = builder.config(name, value)
        try:
            return usable_session(builder.getOrCreate())
        except CountervailError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever Java says when it does not start
            raise _unreachable(place, error) from None


def _settings(master: str, memory: int) -> dict[str, str]:
    # On one machine the 200 parts of a cluster cost more than what is done with them.
    here = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "16",
    }
    return {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": f"{max(memory >> 20, 512)}m",
        "spark.driver.maxResultSize": f"{max(memory >> 20, 512)}m",
        "spark.ui.showConsoleProgress": "false",
        **(here if master.startswith("local") else {}),
    }


def _unreachable(master: str, error: Exception) -> CountervailError:
    return DataNotFoundError(
        f"No session of Spark at master '{master}' ({type(error).__name__}). It needs Java 17 on this machine, and a "
        f"master that can be reached: 'local[2]', 'spark://host:7077', 'sc://host' (--master on the command line)."
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Without Spark's remark that it does not yet know this version of pandas, which it is not asked for."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


class Pinned:
    """Settings that answers depend on while something runs, and the user's own afterwards; errors become ours."""

    def __init__(self, session: Any) -> None:
        self._conf = session.conf
        self._before: dict[str, str | None] = {}
        self._quiet = quiet()

    def __enter__(self) -> None:
        self._quiet.__enter__()
        for name, value in _PINNED.items():
            now = self._conf.get(name, None)
            if now != value:
                self._before[name] = now
                self._conf.set(name, value)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for name, value in self._before.items():
                if value is None:
                    self._conf.unset(name)
                else:
                    self._conf.set(name, value)
        except Exception:
            if error is None:
                raise
        finally:
            self._quiet.__exit__(None, None, None)
        if isinstance(error, Exception) and not isinstance(error, CountervailError) and _is_sparks(error):
            raise told(error) from None


def _is_sparks(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j", "grpc")


def told(error: Exception) -> CountervailError:
    """Spark's error in words of ours: its own may hold values of a row."""
    text = str(error)
    ours = re.search(r"countervail\.core\.errors\.(\w+): ([^\n]+)", text)
    if ours is not None and isinstance(kind := getattr(errors, ours[1], None), type):
        return kind(ours[2])  # type: ignore[no-any-return]
    if "ModuleNotFoundError" in text or "PYTHON_VERSION_MISMATCH" in text:
        return ParameterError(
            "Spark's workers need the same Python as the driver, with countervail installed in it. Set PYSPARK_PYTHON "
            "to the path of such a Python before the session is started."
        )
    named = re.search(r"([^\s/'\"]+\.parquet)", text)
    if "PATH_NOT_FOUND" in text or "FileNotFound" in text or "UnknownHost" in text or "No FileSystem" in text:
        found = re.search(r"[a-z0-9]+:/[^\s'\"?]+", text)
        return DataNotFoundError(f"Spark cannot read {found[0] if found else 'the data'}: it cannot be reached.")
    if "TABLE_OR_VIEW_NOT_FOUND" in text:
        return DataNotFoundError("Spark knows no table of this name.")
    if "No space left" in text:
        return CountervailError("The disk is full: Spark cannot write. Nothing has left.")
    if "OutOfMemory" in text or "maxResultSize" in text:
        return ParameterError("Spark's driver needs more memory. Give more with memory='...' (--memory).")
    if named is not None and re.search(r"FAILED_READ_FILE|CANNOT_READ_FILE|not a Parquet|footer|ParquetDecoding", text):
        return SchemaError(f"Spark cannot read the data: '{unquote(Path(named[1]).name)}' is damaged, or not Parquet.")
    condition = getattr(error, "getCondition", getattr(error, "getErrorClass", lambda: None))()
    return CountervailError(f"Spark could not do it ({condition or type(error).__name__}). Nothing has left.")
