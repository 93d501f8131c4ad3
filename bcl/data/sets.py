"""The data sets of the paper's benchmarks: what a complete one looks like, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from bcl.errors import unknown


@dataclass(frozen=True)
class Origin:
    """A file at a data set's public home."""

    url: str
    checksum: str  # algorithm:digest


@dataclass(frozen=True)
class SetSpec:
    """A complete copy has exactly these counts: a part of a set would give figures that mean something else."""

    name: str
    shape: tuple[int, int, int]  # channels, height, width
    classes: int
    train: int
    test: int
    home: str  # where people get it
    origins: tuple[Origin, ...] = ()  # empty: it has no public home that can be downloaded from

    @property
    def mode(self) -> str:
        """Pillow's name for the kind of image."""
        return "L" if self.shape[0] == 1 else "RGB"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in Pillow's order."""
        return self.shape[2], self.shape[1]


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_CIFAR = "https://www.cs.toronto.edu/~kriz/"

SETS: dict[str, SetSpec] = {
    spec.name: spec
    for spec in (
        SetSpec(
            "mnist", (1, 28, 28), 10, 60_000, 10_000, "http://yann.lecun.com/exdb/mnist/",
            (
                Origin(_MNIST + "train-images-idx3-ubyte.gz", "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873"),
                Origin(_MNIST + "train-labels-idx1-ubyte.gz", "md5:d53e105ee54ea40749a09fcbcd1e9432"),
                Origin(_MNIST + "t10k-images-idx3-ubyte.gz", "md5:9fb629c4189551a2d022fa330f9573f3"),
                Origin(_MNIST + "t10k-labels-idx1-ubyte.gz", "md5:ec29112dd5afa0611ce80d1b7f02629c"),
            ),
        ),
        SetSpec(
            "cifar10", (3, 32, 32), 10, 50_000, 10_000, _CIFAR + "cifar.html",
            (Origin(_CIFAR + "cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530"),),
        ),
        SetSpec(
            "cifar100", (3, 32, 32), 100, 50_000, 10_000, _CIFAR + "cifar.html",
            (Origin(_CIFAR + "cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8"),),
        ),
        SetSpec(
            "cub", (3, 224, 224), 200, 5_994, 5_794, "https://www.vision.caltech.edu/datasets/cub_200_2011/",
            (
                Origin(
                    "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
                    "md5:97eceeb196236b17998738112f37df78",
                ),
            ),
        ),
        SetSpec(
            "tiny-imagenet", (3, 64, 64), 200, 100_000, 10_000, "https://cs231n.stanford.edu/",
            (Origin("https://cs231n.stanford.edu/tiny-imagenet-200.zip", "md5:90528d7ca1a48142e341f4ef8d21d0de"),),
        ),
        SetSpec("miniimagenet", (3, 84, 84), 100, 50_000, 10_000, "a subset of ImageNet (Vinyals et al., 2016)"),
    )
}  # fmt: skip

# The weights that Split CUB starts from; not a data set, but fetched, imported and verified like one.
RESNET18 = "resnet18"
RESNET18_ORIGIN = Origin(
    "https://download.pytorch.org/models/resnet18-f37072fd.pth",
    "sha256:f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec",
)


def set_spec(name: str) -> SetSpec:
    if name not in SETS:
        raise unknown("data set", name, (*SETS, RESNET18))
    return SETS[name]


def how_to_get(name: str) -> str:
    """The end of every sentence that says that something is missing."""
    if name.startswith("own/"):
        return "a run on its folder:PATH or npz:FILE reads it again"
    downloads = name == RESNET18 or bool(SETS[name].origins)
    fetch = f"`bcl data fetch {name}` downloads it, " if downloads else ""
    return f"{fetch}`bcl data import {name} {'FILE' if name == RESNET18 else 'PATH'}` takes a copy that you have"
