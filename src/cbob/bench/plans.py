"""The campaigns that have a name: which cells each of the tables and pictures is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cbob.bench.problems import PROBLEMS
from cbob.bench.runs import PROTOCOL_BUDGET, Cell
from cbob.errors import CbobError, listed, shown

__all__ = ["PLANS", "Plan", "Row", "plan"]


@dataclass(frozen=True, order=True)
class Row:
    """A way of going about it: a row of a table."""

    strategy: str
    surrogate: str = "hlgp"

    @property
    def label(self) -> str:
        """The name in tables and pictures; HLGP goes without saying."""
        name = LABELS.get(self.strategy, self.strategy)
        return name if self.surrogate == "hlgp" else f"{name} ({self.surrogate.upper()})"


@dataclass(frozen=True)
class Plan:
    """A table: ways of going about it (rows) on problems (columns), each at a scenario."""

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]  # problem and scenario
    rows: tuple[Row, ...]
    budget: int = PROTOCOL_BUDGET

    @property
    def cells(self) -> list[Cell]:
        return [self.cell(row, column) for column in self.columns for row in self.rows]

    def cell(self, row: Row, column: tuple[str, str]) -> Cell:
        return Cell(*column, row.strategy, row.surrogate, self.budget)


LABELS = {
    "cbob": "CBOB",
    "cbob-mub": "CBOB-MUB",
    "eic": "EIC",
    "mesc": "MESC",
    "tsc": "TSC",
    "pi-cb": "PI-CB",
    "sobol": "Sobol",
    "auto": "auto",
    "optuna-gp": "Optuna GP",
    "optuna-tpe": "Optuna TPE",
    "botorch-logei": "BoTorch LogEI",
    "botorch-scbo": "BoTorch SCBO",
}


def _at(scenario: str, *problems: str) -> tuple[tuple[str, str], ...]:
    return tuple((problem, scenario) for problem in problems)


def _rows(*strategies: str) -> tuple[Row, ...]:
    return tuple(Row(strategy) for strategy in strategies)


def _half(name: str) -> tuple[tuple[str, str], ...]:
    return tuple((problem.name, problem.scenario) for problem in PROBLEMS.values() if problem.half == name)


S1_PROBLEMS = ("keane-10", "welded-beam-code", "welded-beam", "xgb-h", "lunar")
S2_PROBLEMS = ("ackley-5", "ackley-1", "pressure-vessel", "mlp-d", "swimmer")
COLUMNS = _at("S1", *S1_PROBLEMS) + _at("S2", *S2_PROBLEMS)
RIVALS = _rows("auto", "eic", "cbob", "cbob-mub", "mesc", "tsc")

PLANS: Mapping[str, Plan] = MappingProxyType(
    {
        plan.name: plan
        for plan in (
            Plan(
                "table1",
                "Table 1: the objective is hidden where a limit breaks (S1)",
                COLUMNS[:5],
                _rows("eic", "mesc", "tsc", "cbob"),
            ),
            Plan(
                "table2",
                "Table 2: so are the readings of the limits that broke (S2)",
                COLUMNS[5:],
                (Row("eic", "gpc"), Row("mesc", "gpc"), *_rows("eic", "mesc", "tsc", "cbob")),
            ),
            Plan(
                "b3",
                "Appendix B.3: expected improvement and its balanced forms (S1)",
                _at("S1", "keane-5", "keane-10", "xgb-h", "lunar"),
                _rows("eic", "cbob", "cbob-mub"),
            ),
            Plan("auto", "The default strategy against each of the others", COLUMNS, RIVALS),
            Plan(
                "s3",
                "Nothing is told of a failure but that it failed (S3)",
                _at("S3", *S1_PROBLEMS, *S2_PROBLEMS),
                _rows("auto", "eic", "cbob"),
            ),
            Plan("tuning", "The half of the suite on which settings were chosen", _half("tuning"), RIVALS),
            Plan("held-out", "The half of the suite that is only reported", _half("held out"), RIVALS),
            Plan(
                "toy",
                "The toy, in a moment",
                _at("S2", "toy"),
                (Row("eic", "gpc"), *_rows("eic", "mesc", "tsc", "cbob", "auto")),
                budget=10,
            ),
        )
    }
)


def plan(name: str) -> Plan:
    """The campaign of this name."""
    if name not in PLANS:
        raise CbobError(f"the campaigns are {listed(PLANS)}, not {shown(name)}")
    return PLANS[name]


def cells_of(names: Iterable[str]) -> list[Cell]:
    """The cells of these campaigns, each once."""
    return list(dict.fromkeys(cell for name in names for cell in plan(name).cells))
