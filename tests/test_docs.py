"""What the documentation shows is run: every block of Python and every command of every page, or there is a reason."""

from __future__ import annotations

import dataclasses
import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from commands import Step, run, steps, unfenced

from bcl.cli import catalogue
from bcl.report.summary import summarize
from bcl.streams import BENCHMARKS
from bcl.studies.contract import PROMISES

ROOT = Path(__file__).parents[1]
FILES = [*ROOT.glob("*.md"), ROOT / "results" / "README.md", *(ROOT / "docs").rglob("*.md")]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in FILES)

OWN_ENVIRONMENT = "it makes an environment of its own"
NEEDS_DATA = "it needs a data set that is not embedded; tests/cli/test_data_cli.py runs such benchmarks on small copies"
NETWORK = "it needs the network; tests/data has a server of its own"
INSTALLS = "it installs packages"
PUBLISHED = "scripts/site_hooks.py runs it when the site is built; tests/test_results.py reads the same runs"
MINUTES = "it takes minutes; tests/studies and tests/schedule run small suites in the same way"
# Commands that are not run by these tests, and why.
NOT_RUN = {
    "make demo": f"{OWN_ENVIRONMENT}; tests/cli/test_cli.py runs bcl demo",
    "make test": OWN_ENVIRONMENT,
    "make site": f"{OWN_ENVIRONMENT}; tests/test_site.py builds the site",
    ".venv/bin/pytest tests/data -x": "it is a part of these tests",
    "pre-commit install": "it changes the repository",
    "pip install -c constraints.txt -e '.[dev]'": INSTALLS,
    "pip install 'bcl[ray]'": INSTALLS,
    "pip install 'bcl[tensorboard]'": INSTALLS,
    "podman build -t bcl .": "it needs podman and the network",
    "podman run --rm bcl": "it needs podman",
    'podman run --rm -v "$PWD":/work -v bcl-data:/data bcl run split-digits er --seeds 3': "it needs podman",
    "bcl data fetch cifar100": NETWORK,
    "bcl data import cifar100 PATH": "PATH is the reader's; tests/cli/test_data_cli.py imports",
    "bcl run split-cifar100 bcl-dual --seeds 5 --device cuda --precision tf32": NEEDS_DATA,
    "bcl run split-cifar100 bcl-mean --set repeats=4 --set augment=crop": NEEDS_DATA,
    "bcl suite run paper/table1 --device cuda --precision tf32": NEEDS_DATA,
    "bcl suite run beyond/protocol --device cuda --precision tf32": NEEDS_DATA,
    "bcl suite run beyond/width20 --device cuda --precision tf32": NEEDS_DATA,
    "bcl suite run beyond/authors --device cuda --precision tf32": NEEDS_DATA,
    "bcl suite run beyond/memory --out runs/beyond/width20": NEEDS_DATA,
    "bcl suite run beyond/cifar10 --device cuda --precision tf32": NEEDS_DATA,
    "bcl suite run beyond/tiny-imagenet --device cuda --precision tf32": NEEDS_DATA,
    "bcl suite run beyond/ablation --device cuda --precision tf32": NEEDS_DATA,
    "bcl suite run beyond/bounds --device cuda --precision tf32": NEEDS_DATA,
    "BCL_ALL_CHECKS=1 pytest tests/online": "it is a part of these tests; all checks take minutes",
    "bcl suite run paper/table1 --engine ray --address auto --out /shared/runs/table1": NEEDS_DATA,
    "bcl report results/paper/table1": PUBLISHED,
    "bcl suite run digits --seeds 3": MINUTES,
    "bcl report runs/digits": MINUTES,
    "bcl suite run digits --engine ray": MINUTES,
    "bcl suite run digits --log tensorboard": MINUTES,
    "tensorboard --logdir runs/digits/tensorboard": "it is a server that does not end",
    "bcl tune split-digits er bcl-dual": MINUTES,
    "bcl tune split-digits er --search optuna --trials 20": MINUTES,
    "bcl speed --json > speed.json": "it takes minutes; tests/studies/test_speed.py runs it on few methods",
    "bcl run permuted-digits bcl-dual --seed 0 --out runs/long": "test_cli_mistakes.py stops a run, and goes on",
    "python bench/step_overhead.py": "it measures; tests have no stopwatch",
    "my_pretrained.py": "it reads weights of the reader's; a test below makes some",
    "pip install 'bcl[service]'": INSTALLS,
    "FEATURES=2 CLASSES=4 uvicorn --app-dir examples service:app": "it is a server that does not end",
    """curl -X POST localhost:8000/learn -H 'content-type: application/json' -d '{"x": [[0.1, 0.7]], "y": [3]}'""": "it needs the server",  # noqa: E501
    """curl -X POST localhost:8000/predict -H 'content-type: application/json' -d '{"x": [[0.1, 0.7]]}'""": "it needs the server",  # noqa: E501
    "curl localhost:8000/": "it needs the server",
    "theirs.py": "it needs timm",
    "bcl suite run digits --methods er,mer": MINUTES,
    "bcl suite run paper/table1 --benchmarks split-cifar100": "it needs a GPU; test_cli_comfort.py runs one of two",
}
# Commands that are run with fewer seeds.
FEWER = {
    "bcl run split-digits finetune er bcl-dual --scenario class --seeds 3 --out runs/first": ("--seeds 3", "--seeds 1"),
    "bcl run split-digits er icarl bcl-dual --net my_nets:small --seeds 2 --out runs/my-nets": ("seeds 2", "seed 0"),
    "bcl suite run sizes.yaml && bcl report runs/sizes": ("sizes.yaml", "sizes.yaml --seeds 1"),
}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def to_run(page: str) -> list[Step]:
    """All steps of a page but those with a reason, and those of the README that the quick start repeats."""
    elsewhere = {step[1] for step in steps(text_of("docs/quick-start.md")) if page == "README.md"}
    found = [step for step in steps(text_of(page)) if step[1] not in {*NOT_RUN, *elsewhere}]
    return [(kind, name.replace(*FEWER.get(name, ("", ""))), code) for kind, name, code in found]


def readme(said: dict[str, str], directory: Path) -> None:
    (answer,) = (text for name, text in said.items() if name.endswith(".py"))
    assert float(answer.rpartition(":")[2]) > 0.9
    assert (directory / "learner.safetensors").exists()


def quick_start(said: dict[str, str], directory: Path) -> None:
    row = re.compile(r"^│ (\S+) +│ +(\d+\.\d\d) ", re.MULTILINE)
    told = dict(row.findall(text_of("docs/quick-start.md")))
    (table,) = (text for name, text in said.items() if name.startswith("bcl run split-digits finetune er"))
    found = dict(row.findall(table))
    assert found.keys() == told.keys() == {"finetune", "er", "bcl-dual"}
    assert abs(float(found["bcl-dual"]) - float(told["bcl-dual"])) < 4, (
        "the page shows other figures"
    )  # seeds are alike
    (answer,) = (text for name, text in said.items() if name.endswith(".py"))
    assert "%" in answer
    assert (
        json.loads((directory / "small.json").read_text(encoding="utf-8"))["runs"][0]["benchmark"] == "permuted-digits"
    )


def own_data(said: dict[str, str], directory: Path) -> None:
    assert len(list((directory / "runs" / "photos").glob("*/result.json"))) == 4
    assert said["python in_python.py"].count("[") == 2  # a row of accuracies after each of two tasks


def own_network(said: dict[str, str], directory: Path) -> None:
    (table,) = (text for name, text in said.items() if name.startswith("bcl run"))
    assert all(name in table for name in ("er", "icarl", "bcl-dual"))
    assert any("[72, 10]" in text for text in said.values())
    import torch

    import bcl

    setting = bcl.benchmark("split-digits").stream(seed=0).setting
    net = runpy.run_path(str(directory / "my_nets.py"))["small"](setting)
    torch.save(net.body.state_dict(), directory / "my_weights.pth")
    (code,) = (code for _, name, code in steps(text_of("docs/own-network.md")) if name == "my_pretrained.py")
    use = "import bcl\ns = bcl.benchmark('split-digits').stream(seed=0).setting\nprint(pretrained(s).body)"
    assert "Conv2d" in run([("python", "my_pretrained.py", f"{code}\n{use}")], directory)["my_pretrained.py"]


def own_method(said: dict[str, str], directory: Path) -> None:
    by_command: dict[str, str] = {}
    for name, text in said.items():
        if name.startswith("bcl "):
            by_command[name.split()[1]] = by_command.get(name.split()[1], "") + text
    assert set(by_command) == {"check", "run", "report", "tune", "speed", "list"}
    assert by_command["check"].count("ok ") == 2 * len(PROMISES)
    assert "replay:Replay" in by_command["run"]
    assert "FAILED" not in by_command["check"]
    assert all("mean_teacher:MeanTeacher" in by_command[command] for command in ("run", "tune", "speed", "list"))
    assert "mean_teacher:MeanTeacher" in (directory / "runs/mine/report.html").read_text(encoding="utf-8")
    assert all(name in by_command["list"] for name in ("replay_batch", "consistency", "weight of the distance"))
    results = [json.loads(path.read_text()) for path in directory.glob("runs/mine/*/result.json")]
    accuracy = {line["method"]: line["acc"]["mean"] for line in summarize(results)}
    assert accuracy["mean_teacher:MeanTeacher"] > accuracy["finetune"] + 30
    table = text_of("docs/own-method.md")
    assert f"{accuracy['mean_teacher:MeanTeacher']:.2f} ±" in table, "the page shows what the command prints"
    assert (directory / "runs/hyper.yaml").exists()
    assert said["use_it.py"].startswith("ACC ")


def any_stream(said: dict[str, str], _: Path) -> None:
    one, by_name, learner, boundaries, tasks = said.values()
    first, second = one.splitlines()
    assert float(first.rpartition(":")[2]) > 0.9
    assert second == "same answers: True, samples so far: 1200"
    assert by_name == "tall ['small', 'tall']\n"
    right, stored, restored = learner.splitlines()
    assert int(right.split()[0]) >= 20, right
    assert (right.split(", ")[1], stored, restored) == ("32 columns", "3000 stored, room for 4096", "ER True")
    none, drift = (int(line.split()[1]) for line in boundaries.splitlines())
    assert drift > none
    assert boundaries.splitlines()[1].endswith("3 stretches")
    assert tasks == "torch.Size([1, 5])\n"


def text(said: dict[str, str], directory: Path) -> None:
    found = as_shown("docs/text.md", said["python stream_of_text.py"])
    assert found["er"] > found["finetune"] + 20


def frozen_backbones(said: dict[str, str], directory: Path) -> None:
    found = as_shown("docs/frozen-backbones.md", said["python encoded.py"])
    assert found["ranpac"] > found["finetune"] + 20
    by_command = {name.split()[1]: text for name, text in said.items() if re.match("bcl (?!.*--encoder)", name)}
    assert all(name in by_command["run"] for name in ("ncm", "slda", "ranpac", "er"))
    assert "shrinkage" in by_command["tune"]
    runs = [json.loads(path.read_text()) for path in (directory / "runs" / "encoded").glob("*/result.json")]
    assert {(run["method"], run["config"]["encoder"]) for run in runs} == {
        (m, "backbones:small") for m in ("er", "slda")
    }
    assert all(run["acc"] > 75 for run in runs)
    features = list((directory / "cache" / "features").glob("*.npy"))
    assert len(features) == 2, "of the two splits, for four runs and for tuning"
    chosen = yaml.safe_load((directory / "runs" / "hyper.yaml").read_text(encoding="utf-8"))
    assert set(chosen["split-digits --encoder backbones:small"]["class"]["er"]) == {"lr"}


def as_shown(page: str, said: str) -> dict[str, float]:
    """`name 12.3 %` by name, as printed; near to what the page shows, for another processor rounds otherwise."""
    (shown, *_) = re.findall(r"```text\n(.*?)```", text_of(page), re.DOTALL)
    pattern = re.compile(r"^([\w+-]+) +(\d+\.\d) %", re.MULTILINE)
    found, printed = ({name: float(value) for name, value in pattern.findall(one)} for one in (said, shown))
    assert said.splitlines()[0] == shown.splitlines()[0]
    assert found.keys() == printed.keys()
    assert all(abs(found[name] - value) < 8 for name, value in printed.items()), f"{page} shows other figures: {found}"
    return found


CHECKS: dict[str, Callable[[dict[str, str], Path], None]] = {
    "docs/any-stream.md": any_stream,
    "README.md": readme,
    "docs/quick-start.md": quick_start,
    "docs/own-data.md": own_data,
    "docs/own-network.md": own_network,
    "docs/own-method.md": own_method,
    "docs/text.md": text,
    "docs/frozen-backbones.md": frozen_backbones,
}


@pytest.mark.parametrize("page", [page for page in PAGES if to_run(page)])
def test_a_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    said = run(to_run(page), tmp_path)
    CHECKS.get(page, lambda *_: None)(said, tmp_path)


@pytest.mark.parametrize("page", PAGES)
def test_commands_stand_in_fences(page: str) -> None:
    assert unfenced(text_of(page)) == []


def test_what_is_not_run_is_still_there() -> None:
    shown = {name for page in PAGES for _, name, _ in steps(text_of(page))}
    assert {*NOT_RUN, *FEWER} <= shown, "not shown by any page"


def test_networks_of_other_packages_are_named_as_they_are() -> None:
    """The block is not run, for it fetches weights; but its names must exist where the packages are there."""
    assert pytest.importorskip("timm").create_model
    assert pytest.importorskip("transformers").AutoModel


def test_the_service_is_started_as_the_page_says() -> None:
    start = next(name for _, name, _ in steps(text_of("docs/service.md")) if "uvicorn" in name)
    assert start in (ROOT / "examples" / "service.py").read_text(encoding="utf-8")


def test_the_notebook_runs_and_keeps_no_path(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "examples" / "first-steps.ipynb"
    made = runpy.run_path(str(ROOT / "scripts" / "run_notebook.py"))["run"](path)
    said = "".join(
        line for cell in made["cells"] for output in cell.get("outputs", []) for line in output.get("text", [])
    )
    assert "the same answers: True" in said
    accuracy = {name: float(value) for name, value in re.findall(r"^(\S+) +ACC +([\d.]+) %", said, re.MULTILINE)}
    assert accuracy["weighted"] > accuracy["finetune"] + 30
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert all(cell.get("outputs") for cell in kept["cells"] if cell["cell_type"] == "code"), "run_notebook.py --write"
    assert not re.search(r"/(?:home|root|tmp|work|Users)/", path.read_text(encoding="utf-8"))


def test_the_table_of_methods_is_that_of_the_program() -> None:
    text = text_of("docs/methods.md")
    for m in catalogue.methods():
        row = f"| `{m['name']}` | {m['reference']} | {m['memory']} | {m['cost']} | {', '.join(m['scenarios'])} |"
        assert row in text, f"docs/methods.md should have the line:\n{row}"
        assert f"`{m['name']}`" in text.split("## Memory")[1], f"how much {m['name']} keeps"


def test_the_page_of_methods_says_who_needs_boundaries() -> None:
    text = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    needing = [m for m in catalogue.methods() if m["boundaries"] != "not needed"]
    assert needing
    told = text_of("docs/any-stream.md").split("### Boundaries")[1].split("when a task ends")[0]
    assert sorted(re.findall(r"`([^`]+)`", told)) == sorted(m["name"] for m in needing)
    for m in needing:
        assert f"| `{m['name']}` | {m['boundaries'].removeprefix('needed: ')} |" in text


def test_the_readme_names_every_method_and_benchmark() -> None:
    text = text_of("README.md")
    methods = text.split("## Methods")[1].split("## Benchmarks")[0]
    for m in catalogue.methods():
        assert f"`{m['name']}`" in methods
        if len(m["scenarios"]) < 3:
            assert f"`{m['name']}`" in methods.rpartition("|")[2], "the sentence below the table names it"
    for b in BENCHMARKS.values():
        assert re.search(
            rf"^\| `{b.name}` \| {b.learning_tasks} .*\| {b.scenario} .*\| {b.memory} \|", text, re.MULTILINE
        )


def test_every_option_of_fidelity_exists_with_its_values() -> None:
    hyper = {field.name: field for field in dataclasses.fields(_bcl_dual_hyper())}
    text = text_of("docs/fidelity.md")
    rows = re.findall(r"\| `(\w+)=(\w+)`, `(\w+)` \|", text)
    assert len(rows) == 9
    for name, default, other in rows:
        assert str(hyper[name].default).lower() == default
        assert _bcl_dual_hyper().of({name: other}) != _bcl_dual_hyper()()


def _bcl_dual_hyper() -> type:
    from bcl.learners.bcl import BCLDualHyper

    return BCLDualHyper


@pytest.mark.parametrize("page", PAGES)
def test_links_and_records_exist(page: str) -> None:
    text = re.sub(r"<!--.*?-->", "", text_of(page), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"
    for record in re.findall(r"bench/[\w/.-]+\.(?:txt|py|sh)", text):
        assert (ROOT / record).exists(), f"{page} names {record}"
