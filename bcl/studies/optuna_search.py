"""Optuna's sampler in the place of the grid: it looks between the grid's values, where the last trials were good."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bcl.errors import InputError

TRIALS = 30  # unless told otherwise
Point = dict[str, Any]


class Sampler:
    """Asks which points to try, and is told how good they are. Its journal remembers both for the next call."""

    def __init__(self, axes: Mapping[str, Sequence[Any]], journal: Path):
        try:
            import optuna
            from optuna.storages import JournalStorage
            from optuna.storages.journal import JournalFileBackend
        except ImportError:
            raise InputError("--search optuna needs Optuna: pip install 'bcl[tune]'") from None
        self.optuna, self.axes, self.asked = optuna, axes, list[Any]()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        journal.parent.mkdir(parents=True, exist_ok=True)
        storage = JournalStorage(JournalFileBackend(str(journal)))
        self.study = optuna.create_study(study_name="tune", direction="maximize", storage=storage, load_if_exists=True)
        for left in self.study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
            self.study.tell(left.number, state=optuna.trial.TrialState.FAIL)  # by a process that was killed
            self.study.enqueue_trial(left.params, skip_if_exists=True)

    def earlier(self) -> list[Point]:
        """The points of earlier calls."""
        return [self._point(self.optuna.trial.FixedTrial(trial.params)) for trial in self._complete()]

    def ask(self, trials: int, at_once: int) -> list[Point]:
        """The points to try next: some of what is missing of so many trials in all."""
        done = len(self._complete())
        self.study.sampler = self.optuna.samplers.TPESampler(seed=done, n_startup_trials=min(10, trials // 2))
        self.asked = [self.study.ask() for _ in range(min(at_once, trials - done))]
        return [self._point(trial) for trial in self.asked]

    def tell(self, accuracies: Sequence[float]) -> None:
        """Of the points that were asked for."""
        for trial, accuracy in zip(self.asked, accuracies, strict=True):
            self.study.tell(trial, accuracy)

    def _complete(self) -> list[Any]:
        states = (self.optuna.trial.TrialState.COMPLETE,)
        return list(self.study.get_trials(deepcopy=False, states=states))

    def _point(self, trial: Any) -> Point:
        return {name: _suggest(trial, name, known) for name, known in self.axes.items()}


def _suggest(trial: Any, name: str, known: Sequence[Any]) -> Any:
    """Between the least and the greatest of the grid's values: rates by their logarithm, to three digits, counts as
    whole numbers."""
    if all(type(value) is int for value in known):
        return trial.suggest_int(name, min(known), max(known))
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known) and len(set(known)) > 1:
        value = trial.suggest_float(name, float(min(known)), float(max(known)), log=min(known) > 0)
        return float(f"{value:.3g}")
    return trial.suggest_categorical(name, list(known))
