"""The mechanisms of "Differentially-private and plausible counterfactuals", as their authors ran them.

They are here to be measured, beside the ones that keep their promise. None of them promises anything.
"""

from countervail.protect.published.base import PublishedExplainer as PublishedExplainer
from countervail.protect.published.gan import DPGAN as DPGAN
from countervail.protect.published.inline import InlineDP as InlineDP
from countervail.protect.published.ldp import LDP as LDP
from countervail.protect.published.post import FeatureExponential as FeatureExponential
from countervail.protect.published.post import LaplaceNoise as LaplaceNoise
from countervail.protect.published.post import NoisyMax as NoisyMax
