"""Inputs and networks of other kinds: tokens, packed samples, outputs that carry logits, half precision."""

import numpy as np
import pytest
import torch
from torch import nn

import bcl
from bcl.errors import InputError
from bcl.learners import METHODS
from bcl.nets import Packed
from bcl.streams import Packing, from_samples

PACKING = Packing.of({"tokens": np.zeros((1, 6), int), "mask": np.zeros((1, 6), int)})


class Reader(nn.Module):
    """Means of embedded tokens; its output is an object, as Hugging Face's are."""

    def __init__(self, classes):
        super().__init__()
        self.embed, self.fc = nn.Embedding(20, 16), nn.Linear(16, classes)

    def forward(self, tokens, mask):
        weight = mask[..., None].to(self.embed.weight.dtype)
        return Output((self.embed(tokens) * weight).sum(1) / weight.sum(1))._through(self.fc)


class Output:
    def __init__(self, logits):
        self.logits = logits

    def _through(self, layer):
        return Output(layer(self.logits))


def sentences(n=240, seed=0):
    """Class c says the words 4c .. 4c + 3, then padding (token 0) that the mask hides: without the mask it would drown
    them."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 4, n)
    tokens = random.integers(0, 4, (n, 6)) + 4 * y[:, None] + 1
    mask = (np.arange(6) < random.integers(2, 7, n)[:, None]).astype(int)
    rows = PACKING.pack({"tokens": np.where(mask, tokens, 0), "mask": mask})
    return list(zip(rows, y.tolist(), (y // 2).tolist(), strict=True))


@pytest.mark.parametrize(
    "name", [name for name in METHODS if name not in ("icarl", "scr", "mose", "ncm", "slda", "ranpac")]
)
def test_tokens_with_a_mask_are_learnt_and_stored(name):
    home = from_samples(sentences(100), sentences(40, seed=1), dtype="int64", scenario="class", memory=10)
    stream = home.stream(0)
    torch.manual_seed(0)
    learner = bcl.method(name)(Packed(Reader(4), PACKING), stream.setting)
    result = bcl.run(learner, stream)
    assert result.metrics["acc"] >= 25
    for memory in learner.modules():
        if hasattr(memory, "filled"):
            stored = memory.x[: memory.slots][memory.filled()]
            assert stored.dtype == torch.int64
            assert len(stored) == 0 or len(stored.unique(dim=0)) > 1


def test_replay_of_tokens_remembers():
    home = from_samples(sentences(), sentences(80, seed=1), dtype="int64", scenario="class", memory=20)
    accuracy = {}
    for name in ("finetune", "er"):
        stream = home.stream(0)
        torch.manual_seed(0)
        learner = bcl.method(name)(Packed(Reader(4), PACKING), stream.setting, lr=1.0)
        accuracy[name] = bcl.run(learner, stream).metrics["acc"]
    assert accuracy["er"] > 90 > 60 > accuracy["finetune"]


def test_a_row_is_unpacked_into_what_was_packed():
    packing = Packing.of({"tokens": np.zeros((1, 3), int), "image": np.zeros((1, 2, 2))})
    tokens, image = torch.tensor([[1, 2, 3]]), torch.rand(1, 2, 2)
    back = Packed(nn.Identity(), packing).unpack(torch.as_tensor(packing.pack({"tokens": tokens, "image": image})))
    assert back["tokens"].dtype == torch.int64
    assert torch.equal(back["tokens"], tokens)
    assert torch.equal(back["image"], image)


def test_samples_of_another_type_are_refused():
    setting = bcl.Setting.split([[0, 1]], shape=(12,), dtype="int64")
    learner = bcl.Finetune(Packed(Reader(2), PACKING), setting)
    rows = np.ones((2, 12), np.int32)
    learner.observe(rows, [0, 1], 0)
    for bad in (rows.astype(float), rows.astype(bool)):
        with pytest.raises(InputError, match=r"samples must be torch.int64 as the setting says, not torch\."):
            learner.observe(bad, [0, 1], 0)
    with pytest.raises(InputError, match=r"several tensors by name become one with bcl\.Packing"):
        learner.observe({"tokens": [[1, 2]]}, [0], 0)
    with pytest.raises(InputError, match="samples must be a tensor or an array of numbers: they are complex"):
        learner.observe(rows.astype(complex), [0, 1], 0)


def test_an_output_without_logits_is_refused():
    learner = bcl.Finetune(nn.LSTM(4, 2), bcl.Setting.split([[0, 1]], shape=(4,)))
    with pytest.raises(InputError, match=r"a tensor or an object with `.logits`, not tuple"):
        learner.observe(np.zeros((3, 4)), [0, 1, 0], 0)


@pytest.mark.parametrize("name", METHODS)
def test_half_precision_learns_and_its_losses_are_float32(name):
    stream = bcl.benchmark("split-digits").stream(seed=0, scenario="class", tasks=2, samples=40)
    net = bcl.build("mlp", stream.setting).to(torch.bfloat16)
    learner = bcl.method(name)(net, stream.setting)
    for t in range(2):
        for batch in stream.batches(t):
            loss = learner.observe(*batch)
            assert loss is None or loss.dtype == torch.float32
    assert bcl.is_finite(learner)
    assert {weight.dtype for weight in learner.net.parameters()} == {torch.bfloat16}
    assert learner.predict(*stream.test(0)[:1], 0).dtype == torch.float32


@pytest.mark.parametrize("name", METHODS)
def test_double_precision_learns(name):
    stream = bcl.benchmark("split-digits").stream(seed=0, scenario="class", tasks=2, samples=40)
    learner = bcl.method(name)(bcl.build("mlp", stream.setting).double(), stream.setting)
    for t in range(2):
        for batch in stream.batches(t):
            learner.observe(*batch)
    assert bcl.is_finite(learner)
    assert {weight.dtype for weight in learner.net.parameters()} == {torch.float64}
    assert learner.predict(*stream.test(0)[:1], 0).isfinite().all()
