"""Optuna's sampler in the place of the grid: it looks between the grid's values, where the last trials were good."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bcl.errors import InputError

Trial = dict[str, Any]
Evaluate = Callable[[Sequence[Trial]], list[float]]  # several trials at once, as they can share the machine


def search(
    axes: Mapping[str, Sequence[Any]], trials: int, evaluate: Evaluate, storage: Path, at_once: int
) -> list[tuple[Trial, float]]:
    """Up to `trials` trials in all. Those of earlier calls with the same storage count, and are returned."""
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend
    except ImportError:
        raise InputError("--search optuna needs Optuna: pip install 'bcl[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    storage.parent.mkdir(parents=True, exist_ok=True)
    states = optuna.trial.TrialState
    journal = JournalStorage(JournalFileBackend(str(storage)))
    study = optuna.create_study(study_name="tune", direction="maximize", storage=journal, load_if_exists=True)
    for left in study.get_trials(deepcopy=False, states=(states.RUNNING,)):  # by a process that was killed
        study.tell(left.number, state=states.FAIL)
        study.enqueue_trial(left.params, skip_if_exists=True)
    earlier = [
        ({name: _rounded(value) for name, value in trial.params.items()}, float(trial.value))
        for trial in study.get_trials(deepcopy=False, states=(states.COMPLETE,))
    ]
    while (done := len(study.get_trials(deepcopy=False, states=(states.COMPLETE,)))) < trials:
        study.sampler = optuna.samplers.TPESampler(seed=done, n_startup_trials=min(10, trials // 2))
        asked = [study.ask() for _ in range(min(at_once, trials - done))]
        values = [{name: _suggest(trial, name, known) for name, known in axes.items()} for trial in asked]
        for trial, accuracy in zip(asked, evaluate(values), strict=True):
            study.tell(trial, accuracy)
    return earlier


def _suggest(trial: Any, name: str, known: Sequence[Any]) -> Any:
    """Between the least and the greatest of the grid's values: rates by their logarithm, counts as whole numbers."""
    if all(type(value) is int for value in known):
        return trial.suggest_int(name, min(known), max(known))
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known) and len(set(known)) > 1:
        return _rounded(trial.suggest_float(name, float(min(known)), float(max(known)), log=min(known) > 0))
    return trial.suggest_categorical(name, list(known))


def _rounded(value: Any) -> Any:
    """Three digits: enough for a rate, and fit to be printed."""
    return float(f"{value:.3g}") if isinstance(value, float) else value
