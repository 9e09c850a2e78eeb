"""Peers: of what their scripts saved, the right runs are compared, with the right numbers."""

import json
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from cbob.bench.figures import draw
from cbob.bench.peers import OWN, PEERS, PLAN, block, contenders, load_peers
from cbob.bench.plans import Row
from cbob.bench.problems import get
from cbob.bench.runs import Record
from cbob.bench.significance import average_ranks
from cbob.bench.summary import by_cell, summarise
from cbob.bench.tables import NOT_RUN
from cbob.errors import StateError
from cbob.strategies import STRATEGIES

BEAM = ("welded-beam", "S1")


def run(sampler: str, seed: int, end: float | None, *, way: str = "raw", problem: str = "welded-beam") -> dict[str, Any]:
    best = [None] * 100 if end is None else [None] * 10 + [end + 3.0] * 50 + [end] * 40
    return {
        "problem": problem,
        "sampler": sampler,
        "way": way,
        "seed": seed,
        "best": best,
        "feasible": 0 if end is None else 40,
        "ask_seconds": 2.0,
        "versions": {},
    }


def save(results: Path, runs: Iterable[dict[str, Any]], name: str = "some.jsonl") -> None:
    (results / "peers").mkdir(exist_ok=True)
    (results / "peers" / name).write_text("".join(json.dumps(one) + "\n" for one in runs))


def ours(strategy: str, seed: int, end: float, column: tuple[str, str] = BEAM) -> Record:
    return Record(PLAN.cell(Row(strategy), column).at(seed), ((0, end + 1.0), (3, end)), (True, False) * 50, 1.0)


def line_of(text: str, start: str) -> str:
    (line,) = (line for line in text.splitlines() if line.startswith(start))
    return line


def test_a_peers_record_has_the_trajectory_and_the_share_that_were_saved(tmp_path: Path) -> None:
    save(tmp_path, [run("scbo", 4, 2.5), run("scbo", 2, None)])
    ((settings),) = load_peers(tmp_path).values()
    lost, found = settings["scbo", "raw"]
    assert (lost.run.seed, found.run.seed) == (2, 4)
    assert lost.best is None and not any(lost.feasible)
    assert np.array_equal(found.trajectory(), [np.nan] * 11 + [5.5] * 50 + [2.5] * 40, equal_nan=True)
    assert np.mean(found.feasible) == 0.4


def test_the_setting_with_the_best_median_counts(tmp_path: Path) -> None:
    good = [run("gp", seed, end, way="penalty") for seed, end in enumerate([2.0, 3.0, 9.0])]
    bad = [run("gp noiseless", seed, end) for seed, end in enumerate([1.0, 4.0, 4.0])]
    save(tmp_path, [*good, *bad], "optuna.jsonl")
    save(tmp_path, [run("tpe", 0, 4.5)], "another.jsonl")
    found = summarise(contenders([], tmp_path))
    assert {cell.strategy: summary.bov for cell, summary in found.items()} == {
        "optuna-gp": (2.0, 3.0, 9.0),
        "optuna-tpe": (4.5,),
    }
    assert "gp, penalty (of 2)" in line_of(block([], tmp_path).split("What counted")[1], "| welded-beam")


def test_a_setting_that_has_run_at_fewer_seeds_does_not_count(tmp_path: Path) -> None:
    save(tmp_path, [run("gp", 0, 3.0), run("gp", 1, 3.0), run("gp noiseless", 0, 1.0)])
    assert [record.best for record in contenders([], tmp_path)] == [3.0, 3.0]


def test_a_setting_that_found_nothing_is_the_worst(tmp_path: Path) -> None:
    save(tmp_path, [*[run("gp", s, None) for s in range(3)], *[run("gp noiseless", s, 50.0) for s in range(3)]])
    assert [record.best for record in contenders([], tmp_path)] == [50.0] * 3


def test_nothing_counts_that_is_not_part_of_the_comparison(tmp_path: Path) -> None:
    """A seed beyond those of everyone, other samplers and problems, a cut-off line, our runs elsewhere."""
    others = [run("gp", 10, 1.0), run("cbob", 0, 1.0), run("gp", 0, 1.0, problem="ackley-1")]
    save(tmp_path, [run("gp", 0, 2.0), *others])
    with (tmp_path / "peers" / "some.jsonl").open("a") as file:
        file.write(json.dumps(run("gp", 1, 1.0))[:-20])
    own = [ours("cbob", 0, 2.1), ours("cbob", 10, 1.0), ours("mesc", 0, 1.0), ours("cbob", 0, 1.0, ("welded-beam", "S2"))]
    found = contenders(own, tmp_path)
    assert [(record.run.cell.strategy, record.run.seed, record.best) for record in found] == [
        ("cbob", 0, 2.1),
        ("optuna-gp", 0, 2.0),
    ]


@pytest.mark.parametrize("broken", [{"best": [1.0] * 99}, {"feasible": "many"}, {"ask_seconds": None}, {"way": []}])
def test_a_line_that_is_no_record_is_refused_by_its_place(tmp_path: Path, broken: dict[str, Any]) -> None:
    save(tmp_path, [run("gp", 0, 2.0), run("gp", 1, 2.0) | broken])
    with pytest.raises(StateError, match=r"some\.jsonl, line 2"):
        load_peers(tmp_path)


def test_the_block_has_medians_tests_counts_and_ranks(tmp_path: Path) -> None:
    seeds = range(8)
    save(tmp_path, [run("scbo", s, 3.0 + 0.1 * s) for s in seeds] + [run("logei", s, 2.0 + 0.11 * s) for s in seeds[:4]])
    own = [ours("auto", s, 2.4 + 0.1 * s) for s in seeds]
    text = block(own, tmp_path)
    medians, tests = (line for line in text.splitlines() if line.startswith("| welded-beam") and "of 1" not in line)
    assert medians == (
        f"| welded-beam (S1) | 2.381 | 4 to 8 | 2.75*, 50% | {NOT_RUN} | {NOT_RUN} | {NOT_RUN} | {NOT_RUN} | "
        f"**2.165**, 40% | 3.35*, 40% |"
    ), "four pairs cannot tell the best from the others"
    assert tests.endswith("| tie (p = 0.12, 4 seeds) | better (p = 0.016, 8 seeds) |")
    p = binomtest(8, 8).pvalue
    assert f"SCBO in 8 of 8 (p = {2 * p:.2g})" in text
    assert "BoTorch LogEI in 0 of 4 (p = 0.12)" in text
    losses = {"auto": [2.4, 2.5, 2.6, 2.7], "LogEI": [2.0, 2.11, 2.22, 2.33], "SCBO": [3.0, 3.1, 3.2, 3.3]}
    ranks = average_ranks({"beam": {name: dict(enumerate(values)) for name, values in losses.items()}})
    assert (
        f"BoTorch LogEI {ranks['LogEI']:.2f}, auto {ranks['auto']:.2f}, BoTorch SCBO {ranks['SCBO']:.2f}; {NOT_RUN}: CBOB"
        in text
    )


def test_where_nothing_has_run_the_block_says_so(tmp_path: Path) -> None:
    text = block([], tmp_path)
    assert "Average ranks (0 of 4 problems): not yet run." in text
    assert "seed by seed: not yet run." in text
    assert text.count(NOT_RUN) == 4 * 7 + 4 * 6 + 2 + 4 * 4
    save(tmp_path, [run("scbo", 0, 2.0)])
    assert "seed by seed: not yet run." in block([], tmp_path), "nobody to compare it with"


def test_the_plan_has_every_problem_in_its_own_scenario_and_our_strategies() -> None:
    assert all(get(name).scenario == scenario for name, scenario in PLAN.columns)
    assert {row.strategy for row in OWN} <= set(STRATEGIES)
    assert not {row.strategy for row in PEERS} & set(STRATEGIES)
    assert len({row.label for row in PLAN.rows}) == 7


@pytest.mark.slow
def test_the_picture_is_drawn_from_whatever_there_is(tmp_path: Path) -> None:
    assert draw("peers", tmp_path, tmp_path) is None
    names = [name for name, _ in PLAN.columns]
    save(tmp_path, [run("scbo", seed, 2.0, problem=name) for seed in range(3) for name in names])
    alone = draw("peers", tmp_path, tmp_path)
    assert alone is not None and alone.stat().st_size > 10_000
    assert len(by_cell(contenders([], tmp_path))) == 4


# ---- the scripts' own file of finished runs ----


@pytest.fixture
def peer_runs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    return pytest.importorskip("peer_runs")


def test_a_line_that_a_kill_has_cut_off_is_replaced(tmp_path: Path, peer_runs: ModuleType) -> None:
    path = tmp_path / "runs" / "some.jsonl"
    peer_runs.append(path, run("gp", 0, 2.0))
    path.write_bytes(path.read_bytes() + b'{"problem":"weld')
    assert [one["seed"] for one in peer_runs.load(path)] == [0]
    peer_runs.append(path, run("gp", 1, 2.0))
    assert [one["seed"] for one in peer_runs.load(path)] == [0, 1]
    assert path.read_bytes().count(b"\n") == 2


def test_a_finished_run_says_what_was_best_from_the_design_on(peer_runs: ModuleType) -> None:
    values = [5.0, np.nan, 4.0, *[np.nan] * 50, 3.0, *[3.5] * 49]
    made = peer_runs.record(("keane-10", "scbo", "raw", 3), values, asking=1.234, packages=("numpy",))
    assert made["best"] == [4.0] * 50 + [3.0] * 50
    assert (made["feasible"], made["ask_seconds"], made["seed"]) == (50, 1.23, 3)
    assert made["versions"] == {"numpy": np.__version__}
    nothing = peer_runs.record(("keane-10", "scbo", "raw", 3), [np.nan] * 210, asking=0.0, packages=())
    assert nothing["best"] == [None] * 100


def test_the_script_repeats_no_finished_run(
    tmp_path: Path, peer_runs: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def execute(problem: str, sampler: str, way: str, seed: int) -> dict[str, Any]:
        asked.append((problem, sampler, way, seed))
        return run(sampler, seed, 2.0, way=way, problem=problem)

    out = tmp_path / "some.jsonl"
    for last in (0, 1):
        monkeypatch.setattr("sys.argv", ["script", "--seeds", f"0-{last}", "--out", str(out)])
        peer_runs.main("words", out=out, problems=["keane-10"], ways={"gp": ("raw", "bilog")}, execute=execute)
    assert asked == [("keane-10", "gp", way, seed) for seed in (0, 1) for way in ("raw", "bilog")]
    assert capsys.readouterr().out.splitlines()[-1].split()[:5] == ["keane-10", "gp", "raw", "2", "2"]


def test_everyone_starts_from_the_rows_of_our_campaigns(peer_runs: ModuleType) -> None:
    from cbob.bench.execution import _optimizer, design_size
    from cbob.bench.scenarios import Scenario

    problem = get("pressure-vessel")
    optimizer = _optimizer(problem, Scenario.S2, "cbob", "hlgp", 3)
    rows = peer_runs.design_of(problem, 3)
    assert len(rows) == design_size(problem)
    for row in rows:
        trial = optimizer.ask()
        assert problem.space.decode(row) == dict(trial.params)
        optimizer.tell(trial, failed="unknown")
