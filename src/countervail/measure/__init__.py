"""Measures: plain functions on what was released."""

from countervail.measure.either import classification_metric as classification_metric
from countervail.measure.either import discernibility as discernibility
from countervail.measure.either import ncp as ncp
from countervail.measure.fairness import Fairness as Fairness
from countervail.measure.fairness import fairness as fairness
from countervail.measure.private import PrivateQuality as PrivateQuality
from countervail.measure.private import exact_matches as exact_matches
from countervail.measure.private import private_quality as private_quality
from countervail.measure.quality import plausibility as plausibility
from countervail.measure.quality import recourse_cost as recourse_cost
from countervail.measure.quality import sparsity as sparsity
from countervail.measure.quality import validity as validity
from countervail.measure.regions import degree_of_privacy as degree_of_privacy
from countervail.measure.regions import pureness as pureness
from countervail.measure.regions import sampled_pureness as sampled_pureness
from countervail.measure.risk import Risk as Risk
from countervail.measure.risk import class_sizes as class_sizes
from countervail.measure.risk import risk as risk
from countervail.measure.table import ReleaseRisk as ReleaseRisk
from countervail.measure.table import average_class_size as average_class_size
from countervail.measure.table import release_risk as release_risk
