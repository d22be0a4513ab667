"""What is believed: Gaussian processes over every function."""

from typing import TYPE_CHECKING

from calamint.lazy import lazy_exports

if TYPE_CHECKING:
    from calamint.model import feasibility
    from calamint.model.bivariate import bivariate_cdf, bivariate_interval_probability
    from calamint.model.config import Model
    from calamint.model.costs import SHORTEST, CostModel, FixedCost, check_costs, cost_model
    from calamint.model.data import Data
    from calamint.model.fitting import fit
    from calamint.model.hyperparameters import Hyperparameters
    from calamint.model.interval_probability import (
        hazard,
        log_normal_density,
        mixture_quantiles,
        probability_derivatives,
        probit_score,
    )
    from calamint.model.known_function import check_known_functions
    from calamint.model.posterior import GPPosterior
    from calamint.model.protocol import CrossMoments, FunctionPosterior, Joint, SamplePaths
    from calamint.model.surrogate import FunctionSurrogate, Surrogate
    from calamint.model.transforms import OutcomeTransform

__all__ = [
    "SHORTEST",
    "CostModel",
    "CrossMoments",
    "Data",
    "FixedCost",
    "FunctionPosterior",
    "FunctionSurrogate",
    "GPPosterior",
    "Hyperparameters",
    "Joint",
    "Model",
    "OutcomeTransform",
    "SamplePaths",
    "Surrogate",
    "bivariate_cdf",
    "bivariate_interval_probability",
    "check_costs",
    "check_known_functions",
    "cost_model",
    "feasibility",
    "fit",
    "hazard",
    "log_normal_density",
    "mixture_quantiles",
    "probability_derivatives",
    "probit_score",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "surrogate": ("Surrogate", "FunctionSurrogate"),
        "bivariate": ("bivariate_cdf", "bivariate_interval_probability"),
        "config": ("Model",),
        "costs": ("SHORTEST", "CostModel", "FixedCost", "check_costs", "cost_model"),
        "data": ("Data",),
        "fitting": ("fit",),
        "hyperparameters": ("Hyperparameters",),
        "interval_probability": (
            "hazard",
            "log_normal_density",
            "mixture_quantiles",
            "probability_derivatives",
            "probit_score",
        ),
        "known_function": ("check_known_functions",),
        "posterior": ("GPPosterior",),
        "protocol": ("CrossMoments", "Joint", "FunctionPosterior", "SamplePaths"),
        "transforms": ("OutcomeTransform",),
    },
    whole=("feasibility",),
)
