"""A small GAN over coded records, its discriminator trained by DP-SGD. Needs torch and opacus."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countervail.core.arrays import Ints
from countervail.core.errors import ParameterError

_HIDDEN, _NOISE, _CLIP = 64, 16, 1.0
_ORDERS = tuple(2**i for i in range(7, 15))  # of Renyi divergences, for small epsilons
_RATES, _BETAS = (2e-3, 5e-4), (0.5, 0.9)  # a generator that moves more slowly than its critic does not collapse


@dataclass(frozen=True, slots=True)
class Settings:
    """Budget and length of the training."""

    epsilon: float
    delta: float
    steps: int
    batch: int


def libraries() -> tuple[Any, Any]:
    """torch and opacus, or an error that names the extra."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # both warn about each other's age on import
            import opacus
            import torch
    except ImportError:
        raise ParameterError(
            "DPGAN needs torch and opacus, which are not installed. Install them with: pip install 'countervail[gan]'."
        ) from None
    return torch, opacus


def synthesise(
    codes: Ints, sizes: Ints, ordered: NDArray[np.bool_], settings: Settings, rows: int, rng: np.random.Generator
) -> tuple[Ints, dict[str, Any]]:
    """Made-up records in codes, and what the training has spent.

    A step draws each record with the same probability, clips its gradient, adds Gaussian noise to the sum, and moves
    the discriminator; the generator sees records through the discriminator only.
    """
    torch, _ = libraries()
    rate = min(1.0, settings.batch / len(codes))
    noise, epsilon = _accounted(settings, rate)
    source = torch.Generator().manual_seed(int(rng.integers(2**63)))
    layout = _Layout(sizes, ordered)
    real = torch.as_tensor(layout.encode(codes), dtype=torch.float32)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # networks this small only wait for each other's threads
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # opacus warns about hooks of torch that it uses itself
            generator = _train(torch, layout, real, rate, noise, settings, source)
            made = generator(torch.randn(rows, _NOISE, generator=source)).detach()
    finally:
        torch.set_num_threads(threads)
    spent = {"delta": settings.delta, "noise": noise, "steps": settings.steps, "sample_rate": rate}
    return layout.decode(made.numpy(), rng), spent | {"epsilon": epsilon}


def _train(torch: Any, layout: _Layout, real: Any, rate: float, noise: float, settings: Settings, source: Any) -> Any:
    """The generator after all steps."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    nn = torch.nn
    state = torch.get_rng_state()
    torch.manual_seed(int(torch.randint(2**62, (1,), generator=source)))
    generator = nn.Sequential(nn.Linear(_NOISE, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, layout.width), layout.squash())
    critic = GradSampleModule(nn.Sequential(nn.Linear(layout.width, _HIDDEN), nn.LeakyReLU(0.2), nn.Linear(_HIDDEN, 1)))
    torch.set_rng_state(state)
    expected = max(1, round(rate * len(real)))
    inner = torch.optim.Adam(critic.parameters(), lr=_RATES[0], betas=_BETAS)
    private = DPOptimizer(
        inner, noise_multiplier=noise, max_grad_norm=_CLIP, expected_batch_size=expected, generator=source
    )
    plain, loss = torch.optim.Adam(generator.parameters(), lr=_RATES[1], betas=_BETAS), nn.BCEWithLogitsLoss()
    for _ in range(settings.steps):
        drawn = real[torch.rand(len(real), generator=source) < rate]
        fake = generator(torch.randn(expected, _NOISE, generator=source))
        private.zero_grad()
        # Made-up rows carry no record: their gradients need no noise, but clipping them too does no harm.
        rows = torch.cat([drawn, fake.detach()])
        labels = torch.cat([torch.full((len(drawn), 1), 0.9), torch.zeros(len(fake), 1)])
        loss(critic(rows), labels).backward()
        private.step()
        plain.zero_grad()
        critic.disable_hooks()
        loss(critic(fake), torch.ones(len(fake), 1)).backward()
        critic.enable_hooks()
        plain.step()
    return generator


class _Layout:
    """Codes as numbers for a network: a position in [0, 1] for ordered columns, one-hot for the others."""

    def __init__(self, sizes: Ints, ordered: NDArray[np.bool_]) -> None:
        self.sizes, self.ordered = sizes, ordered
        self.widths = np.where(ordered, 1, sizes)
        self.starts = np.concatenate([[0], np.cumsum(self.widths)[:-1]])
        self.width = int(self.widths.sum())

    def encode(self, codes: Ints) -> NDArray[np.float64]:
        out = np.zeros((len(codes), self.width))
        for j, start in enumerate(self.starts):
            if self.ordered[j]:
                out[:, start] = codes[:, j] / max(int(self.sizes[j]) - 1, 1)
            else:
                out[np.arange(len(codes)), start + codes[:, j]] = 1.0
        return out

    def decode(self, rows: NDArray[Any], rng: np.random.Generator) -> Ints:
        """The nearest position, or a label drawn by its weight."""
        out = np.empty((len(rows), len(self.sizes)), dtype=np.int64)
        for j, (start, width) in enumerate(zip(self.starts, self.widths)):
            part = rows[:, start : start + width].astype(float)
            if self.ordered[j]:
                out[:, j] = np.clip(np.rint(part[:, 0] * (self.sizes[j] - 1)), 0, self.sizes[j] - 1)
            else:
                out[:, j] = (np.log(np.maximum(part, 1e-12)) + rng.gumbel(size=part.shape)).argmax(axis=1)
        return out

    def squash(self) -> Any:
        """The last layer: each column between 0 and 1, labels as weights that sum to one."""
        import torch

        starts, widths, ordered = self.starts.tolist(), self.widths.tolist(), self.ordered.tolist()

        class Squash(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                parts = [
                    torch.sigmoid(x[:, s : s + w]) if o else torch.softmax(x[:, s : s + w], dim=1)
                    for s, w, o in zip(starts, widths, ordered)
                ]
                return torch.cat(parts, dim=1)

        return Squash()


@cache
def _accounted(settings: Settings, rate: float) -> tuple[float, float]:
    """The least noise whose accountant stays within the budget, and the epsilon that it then states."""
    from opacus.accountants import RDPAccountant
    from opacus.accountants.utils import get_noise_multiplier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the accountant warns when its best order is at the end of its list
        # The accountant's own orders cannot tell an epsilon below ln(1 / delta) / 62, whatever the noise.
        for orders in (RDPAccountant.DEFAULT_ALPHAS, [*RDPAccountant.DEFAULT_ALPHAS, *_ORDERS]):
            try:
                noise = get_noise_multiplier(
                    target_epsilon=settings.epsilon,
                    target_delta=settings.delta,
                    sample_rate=rate,
                    steps=settings.steps,
                    accountant="rdp",
                    epsilon_tolerance=min(0.01, settings.epsilon / 20),
                    alphas=orders,
                )
                break
            except ValueError:
                continue
        else:
            raise ParameterError(
                f"The 'epsilon' parameter of DPGAN must be reachable: no noise brings {settings.steps} steps down to "
                f"{settings.epsilon:g} at delta={settings.delta:g}. Use fewer steps, a smaller batch, or a larger "
                f"epsilon."
            ) from None
        accountant = RDPAccountant()
        accountant.history = [(noise, rate, settings.steps)]
        return float(noise), float(accountant.get_epsilon(settings.delta, alphas=orders))
