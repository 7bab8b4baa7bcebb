"""The public API as users, editors and mypy see it: names, types, docstrings, examples."""

import ast
import doctest
import importlib
import inspect
import io
import os
import pydoc
import re
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from marks import spread

import qkv

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("core", "design", "noise", "claims", "model", "train", "knowledge")
PUBLIC = [(package, name) for package in PACKAGES for name in getattr(qkv, package).__all__]
FUNCTIONS = [(p, n) for p, n in PUBLIC if not inspect.isclass(getattr(getattr(qkv, p), n))]
LONG_EXAMPLES = {("knowledge", "trust"), ("knowledge", "study")}  # they need minutes of training
REFUSE_NOTHING = [("core", "softmax"), ("knowledge", "pantheon"), ("design", "previous")]
CLASSES = [(p, n) for p, n in PUBLIC if inspect.isclass(getattr(getattr(qkv, p), n))]


def ids(pair):
    return ".".join(pair)


def of(pair):
    return getattr(getattr(qkv, pair[0]), pair[1])


RIGHT = """memory = qkv.Memory([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
design = qkv.design.blend(memory, {0: 0.5, 1: 0.5}, tol=0.01)
norm: float = float(design.query.norm())
held: bool = bool(design.certificate.verify())
moments = qkv.noise.reading_moments(memory, design.query, qkv.noise.Gaussian(isotropic=0.1))
first: float = float(moments.weights_var[0])
verdicts = qkv.claims.check("")
same = qkv.core.Memory is qkv.Memory
""".splitlines()
WRONG = {
    "qkv.design.blned(memory, {})": "has no attribute",
    "design.qery": "has no attribute",
    "qkv.noise.spread(memory, design.query)": "has no attribute",
    "qkv.design.blend(memory, {0: 1.0}, tolerance=1)": "Unexpected keyword argument",
    "x: str = moments": "Incompatible types",
}
WRONG_CALLS = [
    'qkv.noise.Gaussian(isotropic="nonsense", along=object())',
    'qkv.noise.reading_moments(memory, "not a query", noise)',
    'qkv.noise.compare(memory, {"a": None}, noise)',
    "qkv.design.copy(memory, object())",
    "qkv.design.wire(keys, {0: object()}, {0: [1.0, 0.0]})",
    'qkv.train.pretrain(["x"], "o", stpes=3)',
    'qkv.model.preset("tiny", d_modle=3)',
    'qkv.design.blend(memory, {0: 1.0}, form="xyz")',
]
RIGHT_CALLS = """
keys = [[1.0, 0.0], [0.0, 1.0]]
memory = qkv.Memory(keys, labels=["a", "b"])
noise = qkv.noise.Gaussian(isotropic=1e-3, along={"a": 0.5}, full=[[1, 0], [0, 1]])
one = qkv.design.blend(memory, {"a": 0.5, "b": 0.5}, form="textbook")
two = qkv.design.blend(keys, {0: 1})
qkv.design.wire(keys, {0: 1, 1: {0: 0.5, 1: 0.5}}, {0: [1.0], 1: [2]}, prefer="rank")
qkv.noise.compare(memory, {"one": one, "pair": (memory.keys, [0.5, 0.5]), "list": [memory.keys[0]]}, noise)
facts = qkv.knowledge.pantheon()
texts, asked = qkv.knowledge.biographies(facts), qkv.knowledge.questions(facts)
qkv.train.pretrain(texts, "o", steps=3, d_model=16, recipe="cloze")
qkv.train.finetune("o", asked, "p", lr=1e-3)
qkv.knowledge.drop_texts_about(texts, asked)
""".strip().splitlines()


STAND_INS = {
    "torch": """from typing import Any, TypeVar
from torch import nn as nn
Same = TypeVar("Same")
class Tensor:
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, index: Any) -> Tensor: ...
class dtype: ...
class device: ...
class Generator: ...
class no_grad:
    def __call__(self, function: Same) -> Same: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...
class inference_mode(no_grad): ...
def __getattr__(name: str) -> Any: ...
""",
    "torch/nn": """from typing import Any
class Module:
    def __getattr__(self, name: str) -> Any: ...
def __getattr__(name: str) -> Any: ...
""",
    "transformers": """from typing import Any
class GPT2Model: ...
def __getattr__(name: str) -> Any: ...
""",
}
"""The classes of large packages that signatures of qkv name; mypy needs minutes for the packages themselves."""
STAND_IN_SETTINGS = """[mypy]
follow_imports = skip
ignore_missing_imports = true
[mypy-qkv.*,numpy.*,jaxtyping.*]
follow_imports = silent
[mypy-torch.*,matplotlib.*,transformers.*]
follow_imports_for_stubs = true
[mypy-torch,torch.nn,transformers]
follow_imports = silent
"""


def settings_of_other_packages():
    """Those of the project's settings for mypy that qkv's own modules do not have: what `make check` knows of other
    packages is then known here too. A user has none of the project's other settings."""
    sections = ["[mypy]", "[mypy-qkv.*]", "follow_imports = silent"]
    for override in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]["overrides"]:
        if override["module"] != ["qkv.*"]:
            sections.append(f"[mypy-{','.join(override['module'])}]")
            sections += [f"{name} = {value}" for name, value in override.items() if name != "module"]
    return "\n".join(sections) + "\n"


@pytest.fixture(scope="module", params=["stand-ins", pytest.param("installed", marks=pytest.mark.slow)])
def said_by_mypy(request, tmp_path_factory):
    """What mypy says of every public name, of scripts, and of their mistakes: line by line, in one run.

    With stand-ins for the large packages that qkv uses, which take seconds, and with the installed packages.
    """
    folder = tmp_path_factory.mktemp("mypy")
    lines = [
        "import qkv",
        *(f"reveal_type(qkv.{p}.{n})" for p, n in PUBLIC),
        *RIGHT,
        *RIGHT_CALLS,
        *WRONG,
        *WRONG_CALLS,
    ]
    (folder / "user.py").write_text("\n".join(lines) + "\n")
    sources, cache = [str(ROOT / "src")], ROOT / ".mypy_cache"
    if request.param == "installed":
        (folder / "mypy.ini").write_text(settings_of_other_packages())
    else:
        (folder / "mypy.ini").write_text(STAND_IN_SETTINGS)
        for package, text in STAND_INS.items():
            (folder / "stand_ins" / package).mkdir(parents=True, exist_ok=True)
            (folder / "stand_ins" / package / "__init__.pyi").write_text(text)
        sources, cache = [str(folder / "stand_ins"), *sources], folder / "cache"
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(cache)]
    done = subprocess.run(
        [*command, "--config-file", "mypy.ini", "user.py"],
        capture_output=True, text=True, env={**os.environ, "MYPYPATH": os.pathsep.join(sources)}, cwd=folder,
    )  # fmt: skip
    found = [re.match(r"user\.py:(\d+): (.*)", line) for line in (done.stdout + done.stderr).splitlines()]
    assert all(found), (done.stdout + done.stderr)[-2000:]
    said = {}
    for each in found:
        said.setdefault(lines[int(each[1]) - 1], []).append(each[2])
    return said


@pytest.fixture(scope="module")
def revealed(said_by_mypy):
    """The type of every public name."""
    told = {pair: said_by_mypy[f"reveal_type(qkv.{pair[0]}.{pair[1]})"] for pair in PUBLIC}
    return {pair: re.fullmatch(r'note: Revealed type is "(.*)"', text)[1] for pair, (text,) in told.items()}


@pytest.mark.parametrize("pair", FUNCTIONS, ids=ids)
def test_mypy_sees_the_signature_of_a_public_function_and_what_it_returns(revealed, pair):
    text = revealed[pair]
    assert text.startswith(("def (", "Overload(")), text
    numpys_own = r"dtype\[Any\]|tuple\[Any, \.\.\.\]|number\[Any[^\]]*\]"  # arrays of any shape and kind
    assert "Any" not in re.sub(numpys_own, "", text), text


@pytest.mark.parametrize("pair", CLASSES, ids=ids)
def test_mypy_sees_public_classes(revealed, pair):
    assert f".{pair[1]}" in revealed[pair] and revealed[pair] != "Any"


def test_a_user_script_passes_and_its_typos_fail_under_mypy_strict(said_by_mypy):
    assert not {line: said_by_mypy[line] for line in RIGHT if line in said_by_mypy}
    for line, message in WRONG.items():
        assert re.match(f"error: .*{message}", said_by_mypy[line][0]), said_by_mypy[line]


@pytest.mark.parametrize("package", PACKAGES)
def test_editors_and_the_interpreter_list_the_same_public_names(package):
    module = importlib.import_module(f"qkv.{package}")
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    guarded = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    shown = {a.asname for block in guarded for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert shown == set(module.__all__) == set(dir(module))
    for name in module.__all__:
        assert callable(getattr(module, name))
    with pytest.raises(AttributeError, match="nothing"):
        _ = module.nothing
    text = pydoc.render_doc(module, renderer=pydoc.plaintext)
    assert all(name in text for name in module.__all__)


def test_public_names_of_the_whole_resolve_and_unknown_ones_do_not():
    for name in qkv.__all__:
        assert getattr(qkv, name) is not None
    assert set(qkv.__all__) < set(dir(qkv))
    with pytest.raises(AttributeError):
        _ = qkv.nothing


@pytest.mark.parametrize("pair", FUNCTIONS, ids=ids)
def test_public_functions_say_what_they_take_return_and_refuse_with_an_example(pair):
    function = of(pair)
    text = inspect.getdoc(function) or ""
    for section in ("Args:", "Returns:", "Raises:", "Example:"):
        needless = (section == "Args:" and not inspect.signature(function).parameters) or (
            section == "Raises:" and pair in REFUSE_NOTHING
        )
        assert section in text or needless, section
    assert ">>> " in text or pair in LONG_EXAMPLES, "its example does not run"
    for name, parameter in inspect.signature(function).parameters.items():
        stars = {parameter.VAR_KEYWORD: "**", parameter.VAR_POSITIONAL: "*"}.get(parameter.kind, "")
        assert re.search(rf"^\s+{re.escape(stars)}{name}(, [\w*, ]+)?:", text, flags=re.M) or re.search(
            rf"^\s+[\w, *]*\b{name}\b[\w, *]*:", text, flags=re.M
        ), f"{name} is not described"


@pytest.mark.parametrize("pair", PUBLIC, ids=ids)
def test_examples_in_docstrings_run(pair):
    thing = of(pair)
    module = importlib.import_module(getattr(thing, "__module__", f"qkv.{pair[0]}"))
    finder = doctest.DocTestFinder(recurse=False)
    failures = io.StringIO()
    wrapped = inspect.unwrap(thing) if not inspect.isclass(thing) else thing
    for test in finder.find(wrapped, pair[1], module=module, globs={"qkv": qkv}):
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        with redirect_stdout(failures):
            runner.run(test)
        assert not runner.failures, failures.getvalue()[-3000:]


def test_the_types_are_shipped():
    assert (ROOT / "src" / "qkv" / "py.typed").is_file()


@pytest.mark.parametrize(
    "name", spread(["design.certificates.load", "core.masks.causal", "errors.QkvError", "train.recipes.RECIPES",
                    "claims.syntax.parser.parse", "noise.moments.mixture", "viz.plots.design", "noise.method",
                    "claims.syntax", "viz", "parallel", "knowledge.studies"], 4),
)  # fmt: skip
def test_submodules_that_mypy_allows_after_import_qkv_exist_at_run_time(name):
    code = f"import qkv, sys\nassert 'torch' not in sys.modules\nqkv.{name}"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})


def test_mypy_rejects_wrong_arguments_and_accepts_right_ones(said_by_mypy):
    assert not {line: said_by_mypy[line] for line in RIGHT_CALLS if line in said_by_mypy}
    told = {call: " ".join(said_by_mypy.get(call, [])) for call in WRONG_CALLS}
    assert [call for call, words in told.items() if "error: " not in words] == [], told


def test_typed_changes_are_the_fields_of_the_dataclasses():
    from qkv.model.config import ModelChanges
    from qkv.train.settings import TrainChanges

    for changes, cls in ((ModelChanges, qkv.model.ModelConfig), (TrainChanges, qkv.train.TrainSettings)):
        assert changes.__annotations__.keys() == cls.__dataclass_fields__.keys()
        assert not changes.__required_keys__
