"""Data sets: bundled, of the papers, and registered ones that live outside the package."""

from countervail.data.as_published import PAPER_SETS as PAPER_SETS
from countervail.data.as_published import paper_table as paper_table
from countervail.data.load import load as load
from countervail.data.propose import propose_schema as propose_schema
from countervail.data.registry import REGISTERED as REGISTERED
from countervail.data.registry import find as find
from countervail.data.toys import toy_credit as toy_credit
from countervail.data.toys import toy_credit_model as toy_credit_model
from countervail.data.toys import toy_credit_query as toy_credit_query
from countervail.data.toys import toy_evaluation as toy_evaluation
