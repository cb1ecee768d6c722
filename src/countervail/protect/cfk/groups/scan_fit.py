"""Answers from groups of people whose rows stay where they are: what a fit does, once they have been counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from countervail.core.encode import Encoder
from countervail.core.errors import bad_parameter
from countervail.core.people import check_k, linked_remark, rows_holding
from countervail.core.schema import Schema
from countervail.engine import Scan
from countervail.engine.columns import known_schema
from countervail.explain.base import check_features
from countervail.model.decision import Decision
from countervail.protect.cfk.base import SearchSettings
from countervail.protect.cfk.groups.candidates import Members
from countervail.protect.cfk.groups.group_search import GroupSearch, check_numbers, check_parameters
from countervail.protect.cfk.groups.group_table import labels_of, made_up
from countervail.protect.cfk.groups.ranking import another_order
from countervail.protect.cfk.groups.scanned import ScannedPeople


def fit_scan(protector: Any, search: Any, scan: Scan, model: Any) -> Schema:
    """Fit a protector's search to a scan; the scan's schema, with what its values tell of it."""
    owner = protector._owner
    if not isinstance(search, GroupSearch) or search.grouping != "clusters":
        must = "'groups', in clusters, for a scan: the others look at rows one by one"
        raise bad_parameter(owner, "search", must, protector.search, "Read it into memory.")
    for name in ("previous", "ledger"):
        if getattr(protector, name) is not None:
            raise bad_parameter(owner, name, "left out for a scan: it is kept row by row", f"a {name}")
    scan.schema.require_quasi(owner)
    check_features(scan.schema, owner)
    secrets = protector.l is not None or protector.t is not None
    people = ScannedPeople.read(scan, protector.sensitive if secrets else None)
    check_k(protector.k, people, owner)
    most, names = scan.rows_per_person()
    k = rows_holding(protector.k, most, len(people), names, owner)
    protector.search_ = fit_groups(search, replace(protector._settings(), k=k), people, model)
    protector.linked_ = linked_remark(most)
    protector._forget()
    return known_schema(scan, people.values.schema)


def fit_groups(search: GroupSearch, settings: SearchSettings, people: ScannedPeople, model: Any) -> GroupSearch:
    """Settle who hides with whom, seal it, and find out what may be handed out, as `GroupSearch.fit` does of rows."""
    check_parameters(search)
    explainer = None if settings.explainer is None else another_order(settings)
    search.settings_ = replace(settings, previous=None, explainer=None)
    values = people.values
    rows = made_up(Encoder.fit(values), dict(values.frame))
    decision = Decision.unseen(model, values.schema, labels_of(values), rows, settings.owner)
    check_numbers(values, rows, decision, settings.owner)
    space = people.space(settings.weights, settings.owner)
    group, regions = search.in_groups(space, people.clean, people.people)
    search.sealed_, place = people.sealed(group, regions)
    search.settle(model)
    search.judge(Members.of(search.sealed_, people.coded(search.sealed_), place[group]), explainer, model)
    search._forget()
    return search
