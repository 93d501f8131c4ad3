"""What every method keeps beside its network, at Split CIFAR-100's sizes: 17 tasks of 5 classes, 65 slots per task.

    python bench/state_size.py          # the record is bench/records/state-size.txt

The size is that of all tensors in the learner's state, the network's own weights and statistics left out.
"""

from __future__ import annotations

from torch import Tensor

from bcl.learners import METHODS, method
from bcl.nets import build
from bcl.streams import Setting


def mebibytes(tensors: dict[str, Tensor]) -> float:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) / 2**20


def main() -> None:
    classes = tuple(tuple(range(5 * t, 5 * t + 5)) for t in range(17))
    setting = Setting("task", classes, (3, 32, 32), dtype="uint8", memory=65)
    net = build("resnet18-reduced", setting)
    print(f"network {mebibytes(net.state_dict()):.2f} MiB, {sum(p.numel() for p in net.parameters()):,} parameters")
    for name in METHODS:
        state = method(name)(build("resnet18-reduced", setting), setting).state_dict()
        print(f"{name:14}{mebibytes({k: v for k, v in state.items() if not k.startswith('net.')}):6.2f} MiB")


if __name__ == "__main__":
    main()
