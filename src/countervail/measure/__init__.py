"""Measures: plain functions on what was released."""

from countervail.measure.quality import plausibility as plausibility
from countervail.measure.quality import recourse_cost as recourse_cost
from countervail.measure.quality import sparsity as sparsity
from countervail.measure.quality import validity as validity
from countervail.measure.risk import Risk as Risk
from countervail.measure.risk import class_sizes as class_sizes
from countervail.measure.risk import risk as risk
