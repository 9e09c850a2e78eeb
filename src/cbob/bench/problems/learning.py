"""Models trained and tested: the error is to be small, and so is the pickled model, in bytes.

Both sizes depend on the version of the package that pickles. The thresholds are the paper's; with the versions
pinned in this repository they let through about half of all random points, as they did there.
"""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from cbob.bench.problems.record import Measured, Problem
from cbob.bench.problems.shorthand import Params, needed
from cbob.bench.problems.training import train
from cbob.constraints import as_constraints
from cbob.errors import CbobError
from cbob.space import Float, Int, Space

__all__ = ["RECORDS"]


def _size(model: Any) -> float:
    return float(sys.getsizeof(pickle.dumps(model)))


def _split(samples: Any, targets: Any) -> Any:
    """Training samples, test samples, training targets, test targets: the same for every evaluation."""
    selection = import_module("sklearn.model_selection")
    return selection.train_test_split(samples, targets, test_size=0.25, random_state=1)


@cache
def _california() -> Any:
    datasets = needed("sklearn.datasets", "xgb-h")
    beside = Path(__file__).resolve().parents[5] / "shared" / "scikit_learn_data"  # beside the repository
    folder = beside if "SCIKIT_LEARN_DATA" not in os.environ and beside.is_dir() else None
    try:
        return _split(*datasets.fetch_california_housing(data_home=folder, return_X_y=True, n_retries=1))
    except OSError as error:
        raise CbobError(
            "the problem 'xgb-h' needs the California housing data, which scikit-learn could not download "
            f"({error}): put its cache file cal_housing_py3.pkz into a folder and name that in SCIKIT_LEARN_DATA"
        ) from error


@cache
def _digits() -> Any:
    return _split(*needed("sklearn.datasets", "mlp-d").load_digits(return_X_y=True))


def _xgb_h(params: Params) -> Measured:
    xgboost = needed("xgboost", "xgb-h")
    samples, unseen, targets, truth = _california()
    with threadpool_limits(1):
        model = xgboost.XGBRegressor(**params, random_state=1, n_jobs=1).fit(samples, targets)
        error = float(((model.predict(unseen) - truth) ** 2).mean())
    return error, {"size": _size(model)}


def _mlp_d(params: Params) -> Measured:
    networks = needed("sklearn.neural_network", "mlp-d")
    samples, unseen, targets, truth = _digits()
    options = dict(params)
    layers = options.pop("units_1"), options.pop("units_2")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that 200 rounds were not enough, or that the loss overflowed
        model = train(networks.MLPClassifier(layers, **options, random_state=1), samples, targets)
        accuracy = float(model.score(unseen, truth))
    for copy in ("_best_coefs", "_best_intercepts"):  # newer versions keep them too; the paper's did not
        vars(model).pop(copy, None)
    return accuracy, {"size": _size(model)}


RECORDS = (
    Problem(
        name="xgb-h",
        space=Space(
            {
                "learning_rate": Float(2**-10, 1, log=True),
                "max_depth": Int(1, 15),
                "colsample_bytree": Float(0.01, 1),
                "reg_lambda": Float(2**-10, 2**10, log=True),
                "reg_alpha": Float(2**-10, 2**10, log=True),
                "min_child_weight": Float(1, 2**7, log=True),
                "n_estimators": Int(1, 2**8, log=True),
            }
        ),
        constraints=as_constraints("size <= 50000"),
        function=_xgb_h,
        feasible_fraction=0.53,
        source="CBOB paper (AAAI 2024): mean squared error of XGBoost on California housing",
    ),
    Problem(
        name="mlp-d",
        space=Space(
            {
                "units_1": Int(4, 256, log=True),
                "units_2": Int(4, 256, log=True),
                "batch_size": Int(4, 256, log=True),
                "alpha": Float(1e-8, 1e-3, log=True),
                "learning_rate_init": Float(1e-5, 1, log=True),
                "tol": Float(1e-6, 1e-2, log=True),
                "beta_1": Float(0, 0.9999),
                "beta_2": Float(0, 0.9999),
            }
        ),
        constraints=as_constraints("size <= 107000"),
        function=_mlp_d,
        direction="maximize",
        feasible_fraction=0.5,
        scenario="S2",
        source="CBOB paper (AAAI 2024): accuracy of a perceptron on scikit-learn's digits",
    ),
)
