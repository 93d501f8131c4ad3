"""BCL's hyper-parameters beyond those of the paper's tables."""

from __future__ import annotations

from bcl.learners.hyper import HyperParameters, hyper, hypers


@hypers
class Extensions(HyperParameters):
    """Options beyond the paper's tables: maximally interfered retrieval, targets that know later classes, the exact
    outer gradient (Eq. 4), adaptation at test time; see `retrieval.py`, `replay.extend_targets`, `hypergradient.py` and
    `adaptation.py`."""

    retrieval: str = hyper(
        "uniform", "what is replayed: a uniform draw, or its most interfered samples", choices=("uniform", "mir")
    )
    candidates: int = hyper(50, "samples that MIR draws and chooses from", symbol="C", low=1)
    track_candidates: bool = hyper(
        True, "batch norm's running statistics follow MIR's candidates too, as in its authors' code"
    )
    later_classes: float = hyper(
        1.0, "probability, in a stored target, of a class that came later: so much of its least probable class's", low=0
    )
    hypergradient: str = hyper(
        "first-order",
        "the outer step: interpolation (Eq. 5), or the gradient through the inner steps (Eq. 4), of rate β",
        choices=("first-order", "exact"),
    )
    adapt: bool = hyper(False, "before a task is evaluated, fine-tune a copy on the task's memory")
    adapt_lr: float = hyper(0.03, "rate of that fine-tuning", above=0)
    adapt_steps: int = hyper(3, "its gradient steps, each on the task's whole memory", low=1)
    adapt_mode: str = hyper(
        "paper",
        "how: batch norm in training mode, the task's classes, all its memory; or as the released code does: "
        "evaluation mode, all classes, the episodic memory alone",
        choices=("paper", "released"),
    )


@hypers
class ReleasedHabits(HyperParameters):
    """Where the paper and its released code differ. The defaults are the released code's: they gave the paper's
    figures."""

    carry_gradients: bool = hyper(
        True, "a step moves along the sum of all gradients since the round began (paper: its own alone)"
    )
    kl_reduction: str = hyper(
        "classes",
        "average the distillation over visible classes too, or over the batch alone",
        choices=("classes", "batch"),
    )
    redraw: bool = hyper(True, "draw the replay batch anew for every inner step (paper: once per round)")
    joint_forward: bool = hyper(
        False, "current and replayed samples in one forward pass (batch norm sees them together)"
    )
    target_mode: str = hyper("train", "mode of the network that computes the soft targets", choices=("train", "eval"))
    interpolate: str = hyper(
        "state",
        "what the outer step covers: batch-norm statistics too, or parameters alone",
        choices=("state", "parameters"),
    )
    evicted: str = hyper(
        "train",
        "a sample that leaves the generalization memory is trained on, or dropped (paper)",
        choices=("train", "drop"),
    )
    prefill: bool = hyper(
        True, "until a task's generalization ring is full, its first sample stands for the empty slots"
    )
    overflow: str = hyper(
        "cut", "a batch that runs over the end of an episodic ring is cut, or wraps around", choices=("cut", "wrap")
    )
