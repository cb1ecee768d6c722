"""Models: training helpers for demos and studies, safe loading of saved ones, and those behind HTTP."""

from countervail.model.paper import PAPER_MODELS as PAPER_MODELS
from countervail.model.paper import train_paper_model as train_paper_model
from countervail.model.private import PrivateLogistic as PrivateLogistic
from countervail.model.remote import Remote as Remote
from countervail.model.saved import load_model as load_model
from countervail.model.saved import save_model as save_model
from countervail.model.train import train_forest as train_forest
