"""The command line as a whole: reading, refusals, exit codes, interrupts."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from marks import some, spread
from typer.testing import CliRunner

from qkv import __version__
from qkv.cli import app
from qkv.errors import QkvError

KEYS = np.eye(4, 6)
VALUES = np.arange(12.0).reshape(4, 3)


def qkv(*arguments):
    """Run one command in this process, as `main` does: (exit code, standard output, standard error)."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit | QkvError):
        raise result.exception
    refusal = f"qkv: {result.exception}" if result.exception and not isinstance(result.exception, SystemExit) else ""
    return (2 if refusal else result.exit_code), result.stdout, refusal


def in_another_process(*arguments, cwd=None):
    command = [sys.executable, "-m", "qkv", *(str(a) for a in arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, "OMP_NUM_THREADS": "1"})


def test_reading_a_memory_from_the_shell(tmp_path):
    np.savez(tmp_path / "m.npz", keys=KEYS, values=VALUES)
    np.save(tmp_path / "q.npy", 50 * KEYS[1])
    code, out, _ = qkv("read", tmp_path / "m.npz", "--query", tmp_path / "q.npy", "--json")
    assert code == 0
    assert json.loads(out)["output"] == pytest.approx(VALUES[1].tolist())


def test_ctrl_c_ends_quietly_with_the_usual_exit_code_and_leaves_nothing(tmp_path):
    draws = ["noise", "sample", "m.npz", "--query", "q.npy", "--isotropic", "1", "--n-draws", "60000000"]
    np.savez(tmp_path / "m.npz", keys=KEYS)
    np.save(tmp_path / "q.npy", KEYS[0])
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "qkv", *draws]
    run = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + 120
        while psutil.Process(run.pid).cpu_times().user < 2 and time.monotonic() < until:
            time.sleep(0.1)  # until it has surely begun to draw, however busy the machine is
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 130 and out == ""
    assert err == "qkv: stopped; no partial file was left\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.npz", "q.npy"]


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(tmp_path):
    command = f"{sys.executable} -m qkv design copy --orthonormal 40x400 --json | true"
    run = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, env=dict(os.environ)
    )
    assert run.returncode == 141 and run.stderr == ""


def test_a_wrong_option_is_told_with_exit_code_2():
    run = in_another_process("design", "copy", "--wrong")
    assert run.returncode == 2 and "--wrong" in run.stderr and "Traceback" not in run.stderr


@pytest.mark.parametrize(
    "arguments",
    some([
        ("design", "copy", "--orthonormal", "4x4", "--save", "folder.json"),
        ("design", "copy", "--orthonormal", "99999999x99999999"),
        ("design", "blend", "--orthonormal", "4x4", "--weights", "0=1e400"),
        ("design", "blend", "--orthonormal", "4x4", "--weights", "0=1e999999999"),
    ], [("design", "copy", "--orthonormal", "4x4", "--save", "folder.json")]),
    ids=lambda a: a[-1],
)  # fmt: skip
def test_what_the_machine_refuses_is_one_message_too(arguments, tmp_path):
    (tmp_path / "folder.json").mkdir()
    run = in_another_process(*arguments, cwd=tmp_path)
    assert run.returncode == 2 and run.stderr.startswith("qkv: ") and len(run.stderr.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["folder.json"]


def test_the_version_is_printed():
    assert qkv("--version") == (0, f"qkv {__version__}\n", "")


@pytest.mark.parametrize(
    "module", spread(["typer", "qkv.cli.common", "qkv.train.recipes", "qkv.errors", "numpy", "torch"], 3)
)
def test_ctrl_c_while_modules_are_imported_ends_with_one_line(module):
    code = f"""
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
sys.argv = ["qkv", "design", "copy", "--orthonormal", "3x3", "--item", "0"]
import runpy
runpy.run_module("qkv", run_name="__main__", alter_sys=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "qkv: stopped; no partial file was left\n")


@pytest.mark.parametrize("module", spread(["typer", "numpy", "torch", "torch.nn", "scipy"], 5, 1))
def test_a_signal_while_modules_are_imported_ends_the_process_before_a_library_sees_it(module, tmp_path):
    """A library in C++ that gets a KeyboardInterrupt in an import aborts; NumPy stays half imported."""
    code = f"""
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(100):
                    pass
            except BaseException as seen:
                os.write(1, b"a library saw it")
sys.meta_path.insert(0, Interrupt())
sys.argv = ["qkv", "design", "copy", "--orthonormal", "3x3", "--item", "0"]
from qkv.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "qkv: stopped; no partial file was left\n")


@pytest.mark.slow
def test_a_signal_in_an_import_during_a_save_leaves_no_temporary_file(tmp_path):
    code = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "matplotlib.backends.backend_svg":
            os.write(1, str(len([p for p in os.listdir() if p.startswith(".qkv-tmp-")])).encode())
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["qkv", "design", "copy", "--orthonormal", "3x3", "--item", "0", "--plot", "x.svg"]
from qkv.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (130, "1") and list(tmp_path.iterdir()) == []


def test_an_interrupt_before_or_after_the_command_ends_the_process_too():
    code = "import os, signal, sys; sys.argv = ['qkv', '--version']\nfrom qkv.__main__ import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    os.kill(os.getpid(), signal.SIGINT)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130 and done.stderr == "qkv: stopped; no partial file was left\n"
    with Path("/dev/full").open("w") as full:
        assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=full).returncode == 130


def test_an_interrupt_while_python_ends_does_not_kill_a_command_that_has_done_its_work():
    code = """
import os, signal, sys
class Last:
    def __del__(self, kill=os.kill, me=os.getpid()):
        kill(me, 2)
sys.last, sys.argv = Last(), ["qkv", "--version"]
from qkv.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout and done.stderr == ""


@pytest.mark.parametrize(
    "forgetting",
    spread(
        [
            "class Last:\n    def __del__(self):\n        interrupt()\ndef work(): Last()",
            "class Last: pass\nkept = []\ndef work(): kept.append(weakref.ref(Last(), interrupt))",
            "class Last: pass\ndef work():\n    last = Last()\n    weakref.finalize(last, interrupt)",
            "def work():\n    gc.callbacks.append(interrupt)\n    gc.collect()\n    gc.callbacks.clear()",
        ],
        4,
    ),
    ids=["destructor", "weak reference", "finalizer", "garbage collector"],
)
def test_an_interrupt_where_python_forgets_exceptions_is_not_forgotten(forgetting):
    code = """
import gc, os, sys, time, weakref
import qkv.cli
def interrupt(*args):
    os.kill(os.getpid(), 2)
    for _ in range(100):
        pass
FORGETTING
def app(*args, **options):
    work()
    time.sleep(20)
qkv.cli.app, sys.argv = app, ["qkv", "design"]
from qkv.__main__ import main
main()
""".replace("FORGETTING", forgetting)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "qkv: stopped; no partial file was left\n")


def test_an_interrupt_that_is_ignored_stays_so():
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv = ['qkv', '--version']\n"
    code += "from qkv.__main__ import main\ntry:\n    main()\nexcept SystemExit:\n    print(signal.getsignal(2).name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("SIG_IGN\n")


def test_the_program_and_the_module_are_the_same():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["scripts"] == {"qkv": "qkv.__main__:main"}


def test_a_damaged_log_is_reported_in_one_line(tmp_path):
    (tmp_path / "log.jsonl").write_text("{\n")
    code = "from qkv.cli.plain_text import degrade_output; degrade_output()\n"
    code += f"from qkv.train.metrics_log import read_log; read_log({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.startswith("qkv: ") and "1 of 1 lines are damaged" in done.stderr
    assert done.stderr.count("\n") == 1


def test_ctrl_c_says_the_same_before_the_command_line_is_imported():
    from pathlib import Path

    from qkv import __main__ as main
    from qkv.cli.exit_codes import STOPPED

    assert f'b"qkv: {STOPPED}\\n"' in Path(main.__file__).read_text("utf-8")
