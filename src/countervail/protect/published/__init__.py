"""What papers describe, as their authors ran it: here to be measured beside what keeps its promise."""

from countervail.protect.published.base import PublishedExplainer as PublishedExplainer
from countervail.protect.published.basic_mondrian import BasicMondrian as BasicMondrian
from countervail.protect.published.equal_halves import EqualHalvesMondrian as EqualHalvesMondrian
from countervail.protect.published.gan import DPGAN as DPGAN
from countervail.protect.published.grasp import GraspCFK as GraspCFK
from countervail.protect.published.inline import InlineDP as InlineDP
from countervail.protect.published.ldp import LDP as LDP
from countervail.protect.published.perturbed.laplace_recourse import LaplaceRecourse as LaplaceRecourse
from countervail.protect.published.perturbed.prototypes import FunctionalPrototypes as FunctionalPrototypes
from countervail.protect.published.perturbed.robust_svm import RobustSVM as RobustSVM
from countervail.protect.published.post import FeatureExponential as FeatureExponential
from countervail.protect.published.post import LaplaceNoise as LaplaceNoise
from countervail.protect.published.post import NoisyMax as NoisyMax
from countervail.protect.published.priv_recourse import PrivRecourse as PrivRecourse
