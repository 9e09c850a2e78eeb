"""An Optuna study whose trials fail: a rocket stage that bursts, starves, or is lost for reasons nobody knows.

python examples/optuna_failing_trials.py

Needs `pip install 'cbob[optuna]'`.
"""

import math

import optuna

from cbob.integrations.optuna import CBOBSampler, report

TRIALS = 30


class TestStandError(Exception):
    """The run was aborted."""


def thrust(trial: optuna.Trial) -> float:
    """To be maximised. The chamber's temperature is only measured if the run survives; the pump says when it starves."""
    pressure = trial.suggest_float("pressure", 1.0, 30.0, log=True)  # MPa
    mixture = trial.suggest_float("mixture", 1.0, 8.0, step=0.1)
    injector = trial.suggest_categorical("injector", ["swirl", "pintle"])

    if pressure > 6.0 * mixture:
        report(trial, violated=["feed"], reason="the pump starved")  # broke, and by how much nobody knows
        raise TestStandError("the pump starved")
    if injector == "swirl" and pressure > 18.0:
        raise TestStandError("the stand shut down")  # no cause named: learned as a limit of its own
    heat = 3000.0 - 90.0 * (mixture - 3.5) ** 2 + 25.0 * pressure
    report(trial, readings={"heat": heat}, satisfied=["feed"])  # counts, whatever happens next
    if heat > 3400.0:
        raise TestStandError("the chamber burned through")
    return math.log(pressure) * (2.0 if injector == "pintle" else 2.2) + math.exp(-((mixture - 3.8) ** 2))


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=CBOBSampler(constraints=["heat <= 3400", "feed <= 0"], seed=1))
    study.optimize(thrust, n_trials=TRIALS, catch=TestStandError)
    for trial in study.trials:
        reason = trial.user_attrs.get("cbob:failure", {}).get("reason", "failed")
        outcome = f"{trial.value:.3f}" if trial.value is not None else reason
        print(f"trial {trial.number:3}  {trial.params}  {outcome}")
    failed = sum(trial.state == optuna.trial.TrialState.FAIL for trial in study.trials)
    print(f"best {study.best_value:.3f} at {study.best_params}; {failed} of {TRIALS} trials failed, and each was learned from")


if __name__ == "__main__":
    main()
