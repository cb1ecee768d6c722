"""What is done, as far as a process can see it by itself: to tell whether two tables take the same work.

Counted are every step of this package's Python (one instruction of the interpreter each), every function of others that
is called, the sizes of all arrays, and all that compiled kernels and models are given: what is equal takes as long.
Kernels that are given records run as the Python that they are compiled from, step by step as well.
"""

import gc
import hashlib
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from numba.core.dispatcher import Dispatcher

import countervail as cv

PACKAGE = str(Path(cv.__file__).parent)
_SIZED = (np.ndarray, pd.DataFrame, pd.Series)


class WorkMeter:
    """Listens from `begin` to `end`; `done` is what was done, one line for each function that was left.

    `also` are files that are looked into beside this package; `stepwise` the names of kernels that are run as Python.
    """

    def __init__(self, *also, stepwise=()):
        self.looked_into, self.stepwise, self.done = (PACKAGE, *also), set(stepwise), []
        self.so_far, self.steps, self.before = 0, 0, None

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, *error):
        self.end()

    def begin(self):
        """Listen, to functions that have already begun as well."""
        if self.before is not None:
            return
        self.before = sys.gettrace(), sys.getprofile(), gc.isenabled()
        gc.disable()
        frame = sys._getframe(1)
        while frame is not None:
            if self._known(frame):
                frame.f_trace, frame.f_trace_opcodes = self._step, True
            frame = frame.f_back
        sys.setprofile(self._called)
        sys.settrace(self._entered)

    def end(self):
        """Listen no more."""
        if self.before is None:
            return
        sys.settrace(self.before[0])
        sys.setprofile(self.before[1])
        if self.before[2]:
            gc.enable()
        self.before = None

    @contextmanager
    def deaf(self):
        """Not listening."""
        heard = self.before is not None
        self.end()
        try:
            yield
        finally:
            if heard:
                self.begin()

    def begins_after(self, monkeypatch, owner, name):
        """Listen from where this function, which draws, is left for the last time."""
        drawn = getattr(owner, name)

        def wrapped(*given, **named):
            self.end()
            found = drawn(*given, **named)
            self.done.clear()
            self.so_far = self.steps = 0
            self.begin()
            return found

        monkeypatch.setattr(owner, name, wrapped)

    def skips(self, monkeypatch, owner, name):
        """Do not listen inside this function."""
        skipped = getattr(owner, name)

        def wrapped(*given, **named):
            with self.deaf():
                return skipped(*given, **named)

        monkeypatch.setattr(owner, name, wrapped)

    def listens_to_kernels(self, monkeypatch):
        """What kernels are given, wherever they are called from Python."""
        kept = {}
        for module in [m for n, m in sorted(sys.modules.items()) if n.startswith("countervail.")]:
            for name, value in list(vars(module).items()):
                if isinstance(value, Dispatcher) and not value.targetoptions.get("no_cpython_wrapper"):
                    monkeypatch.setattr(module, name, kept.setdefault(id(value), _Heard(value, self)))

    def note(self, words):
        """Something was done."""
        self.done.append(words)

    def given(self, name, *values):
        """Something was given these values."""
        if self.before is None:
            return
        with self.deaf():
            self.note(f"{name} is given {hashlib.sha256(repr([_content(v) for v in values]).encode()).hexdigest()}")

    def _known(self, frame):
        return frame.f_code.co_filename.startswith(self.looked_into)

    def _fold(self, *what):
        self.so_far = hash((self.so_far, *what))
        self.steps += 1

    def _entered(self, frame, event, _):
        code = frame.f_code
        if code.co_filename == __file__:
            return None
        self._fold(code.co_filename, code.co_qualname)
        if not self._known(frame):
            return None
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame, event, _):
        if event == "opcode":
            self._fold(frame.f_lasti)
        elif event == "return":
            sizes = [
                (n, v.shape) for n, v in frame.f_locals.items() if isinstance(v, np.ndarray | pd.DataFrame | pd.Series)
            ]
            self.note(f"{frame.f_code.co_qualname}: {sizes}, {self.steps} steps, {self.so_far}")
            self.so_far = self.steps = 0
        return self._step

    def _called(self, frame, event, function):
        if event != "c_call" or frame.f_code.co_filename == __file__:
            return
        of = getattr(function, "__self__", None)
        self._fold(function.__qualname__, of.shape if isinstance(of, np.ndarray) else None)


class _Heard:
    """A kernel that is listened to."""

    def __init__(self, kernel, meter):
        self.kernel, self.meter = kernel, meter

    def __call__(self, *given):
        name = self.kernel.py_func.__name__
        if self.meter.before is not None and name in self.meter.stepwise:
            return self.kernel.py_func(*given)
        self.meter.given(name, *given)
        return self.kernel(*given)

    def __getattr__(self, name):
        return getattr(self.kernel, name)


def _content(value):
    """A value by all that it holds."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    if isinstance(value, pd.DataFrame):
        return value.to_csv(), str(value.dtypes)
    if isinstance(value, tuple | list):
        return [_content(v) for v in value]
    return repr(value)
