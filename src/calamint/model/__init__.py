"""What is believed: Gaussian processes over every function."""

from calamint.model.belief import Belief, FunctionBelief, Start, believe, check_known
from calamint.model.config import Model
from calamint.model.data import Data

__all__ = ["Belief", "Data", "FunctionBelief", "Model", "Start", "believe", "check_known"]
