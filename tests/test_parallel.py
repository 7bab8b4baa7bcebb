"""Worker processes: same results wherever the work is done, no process left behind, no global state touched."""

import gc
import importlib
import multiprocessing
import operator
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
from marks import some, spread

from qkv import parallel
from qkv.design.hull.selectable import copyable
from qkv.errors import QkvError
from qkv.parallel import WorkerPool


def gaussian(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def children():
    return set(psutil.Process().children(recursive=True))


def add(shared, x, y):
    return shared + x + y


# Worker processes import the functions they run, so these come from importable modules.
PIECES = [(i,) for i in range(7)]


def test_results_come_in_order_from_here_from_processes_and_from_threads():
    expected = [10 * i for i in range(7)]
    with WorkerPool(processes=1) as here, WorkerPool(processes=2) as two, ThreadPoolExecutor(2) as threads:
        for pool in (here, two, WorkerPool(executor=threads)):
            reports = []
            assert (
                pool.map(operator.mul, 10, PIECES, lambda done, total, r=reports: r.append((done, total))) == expected
            )
            assert reports == [(i, 7) for i in range(1, 8)]


@pytest.fixture
def nap(tmp_path, monkeypatch):
    """Work that waits and tells which process waited, in a module that worker processes can import."""
    code = "import os, time\n\ndef nap(seconds, number):\n    time.sleep(seconds)\n    return number, os.getpid()\n"
    (tmp_path / "qkv_test_nap.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("qkv_test_nap").nap


@pytest.mark.parametrize("processes", [None, 1, 2, 3])
def test_a_stream_gives_results_in_order(processes):
    pieces = [(i,) for i in range(40)]
    with WorkerPool(processes=processes) as pool:
        assert list(pool.stream(operator.mul, 10, pieces)) == [10 * i for i in range(40)]
        assert list(pool.stream(operator.mul, 10, [])) == []


def test_a_stream_starts_processes_only_if_much_remains(monkeypatch, nap):
    monkeypatch.setattr("qkv.parallel._available_cores", lambda: 2)
    monkeypatch.setattr("qkv.parallel.MIN_SECONDS_TO_JUDGE", 0.05)
    with WorkerPool() as pool:
        assert len(list(pool.stream(nap, 0.02, [(i,) for i in range(20)]))) == 20
        assert pool._workers is None
    monkeypatch.setattr("qkv.parallel.MIN_SECONDS_FOR_PROCESSES", 0.5)
    with WorkerPool() as pool:
        found = list(pool.stream(nap, 0.02, [(i,) for i in range(150)]))
        assert pool._workers is not None
    assert [number for number, _ in found] == list(range(150))
    assert {process for _, process in found} > {os.getpid()}  # this process has worked as well as its child


def test_what_a_worker_died_of_is_done_here(tmp_path, monkeypatch):
    code = "import os\n\ndef die(parent, number):\n    return number if os.getpid() == parent else os._exit(9)\n"
    (tmp_path / "qkv_test_die.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    die = importlib.import_module("qkv_test_die").die
    with WorkerPool(processes=2) as pool:
        assert list(pool.stream(die, os.getpid(), [(i,) for i in range(9)])) == list(range(9))
        assert list(pool.stream(die, os.getpid(), [(i,) for i in range(5)])) == list(range(5))
    assert pool._workers is not None


def test_a_stream_that_is_left_early_or_fails_leaves_no_process(nap):
    before = children()
    with WorkerPool(processes=2) as pool:
        assert next(pool.stream(nap, 0.05, [(i,) for i in range(50)]))[0] == 0
    with WorkerPool(processes=3) as pool, pytest.raises(ZeroDivisionError):
        list(pool.stream(operator.truediv, 1, [(1,)] * 20 + [(0,)] + [(1,)] * 20))
    assert children() <= before


def test_a_pool_maps_several_times_over_and_over_no_pieces():
    with WorkerPool(processes=2) as pool:
        assert pool.map(operator.mul, 10, [], None) == []
        assert pool.map(operator.mul, 10, PIECES, None) == [10 * i for i in range(7)]
        assert pool.map(operator.add, 10, PIECES, None) == [10 + i for i in range(7)]


def test_no_more_processes_are_started_than_there_are_pieces():
    before = children()
    with WorkerPool(processes=8) as pool:
        assert pool.map(operator.neg, 3, [()], None) == [-3]
        assert len(children() - before) == 1
    assert children() <= before


def test_workers_use_one_blas_thread_and_leave_the_callers_environment_alone(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = dict(os.environ)
    with WorkerPool(processes=1 + 1) as pool:
        assert pool.map(os.getenv, "OMP_NUM_THREADS", [()], None) == ["1"]
        assert pool.map(os.getenv, "MKL_NUM_THREADS", [()], None) == ["1"]
    assert dict(os.environ) == before


def test_workers_do_not_import_torch_and_have_a_main_module_of_their_own():
    with WorkerPool(processes=2) as pool:
        modules = pool.map(eval, "sorted(__import__('sys').modules)", [()], None)[0]
        assert "torch" not in modules and "numpy" not in modules
        assert pool.map(eval, "getattr(__import__('__main__'), '__file__', None)", [()], None) == [None]


def test_what_a_worker_prints_does_not_disturb_its_results(capfd):
    with WorkerPool(processes=2) as pool:
        assert pool.map(eval, "print('printed') or __import__('os').system('echo shouted') or 7", [()], None) == [7]
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("work", "shared", "error"),
    [
        (operator.truediv, 1, ZeroDivisionError),
        (int, "x", ValueError),
        (eval, "__import__('sys').exit(3)", SystemExit),
        (eval, "(_ for _ in ()).throw(__import__('qkv').QkvError('a', 'b', 'c'))", QkvError),
        (eval, "(_ for _ in ()).throw(__import__('qkv.errors').errors.MissingExtra('a', 'b'))", QkvError),
        (eval, "lambda: 0", RuntimeError),  # a result that cannot be pickled
    ],
)
def test_an_error_of_the_work_is_raised_here(work, shared, error):
    pieces = [(0,)] * 3 if work is operator.truediv else [()] * 3
    before = children()
    with pytest.raises(error), WorkerPool(processes=2) as pool:
        pool.map(work, shared, pieces, None)
    assert children() <= before


def test_work_that_cannot_be_pickled_is_refused_and_the_pool_still_works():
    with WorkerPool(processes=2) as pool:
        with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
            pool.map(lambda shared: shared, 1, [()], None)
        with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
            pool.map(operator.add, 1, [(lambda: 0,)], None)
        assert pool.map(operator.neg, 1, [()], None) == [-1]


def test_a_worker_that_dies_is_told_and_the_others_are_ended():
    before = children()
    with pytest.raises(QkvError, match="a worker process died"), WorkerPool(processes=2) as pool:
        pool.map(eval, "__import__('os')._exit(9)", [()] * 3, None)
    assert children() <= before


def test_an_interpreter_that_cannot_be_started_is_one_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(QkvError, match="no worker process could be started"), WorkerPool(processes=2) as pool:
        pool.map(operator.neg, 1, [()], None)


@pytest.mark.parametrize(
    "arguments",
    [
        {"processes": 0}, {"processes": -1}, {"processes": 1.5}, {"processes": True}, {"processes": "2"},
        {"processes": 2, "cluster": "tcp://x:1"}, {"executor": object()},
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(QkvError, match="distributing the work"):
        WorkerPool(**arguments)


def test_any_integral_type_is_a_number_of_processes():
    assert WorkerPool(processes=np.int64(3)).size == 3


def test_unclear_wishes_about_who_works_are_refused():
    keys = gaussian(5, 2)
    for wish in ({"processes": 0}, {"processes": 2, "cluster": "tcp://x:1"}, {"executor": object()}):
        with pytest.raises(QkvError):
            copyable(keys, **wish)


def test_a_cluster_that_is_not_there(monkeypatch):
    monkeypatch.setattr(parallel, "CLUSTER_TIMEOUT", 1)
    with pytest.raises(QkvError, match="does not answer"):
        copyable(gaussian(5, 2), cluster="tcp://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(QkvError, match=r'extra .cluster. are missing. Run: python -m pip install "dask\[distributed\]'):
        copyable(gaussian(5, 2), cluster="tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    "address",
    spread(["foo", "", "tcp://", "http://localhost:1", "tcp://localhost:port", "inproc://x", "tls://localhost:1", 5,
            ["a"]], 4),
)  # fmt: skip
def test_an_address_that_is_none_is_one_error(address, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(parallel, "CLUSTER_TIMEOUT", 1)
    with pytest.raises(QkvError, match="does not answer"):
        WorkerPool(cluster=address)


def test_whatever_a_transport_raises_is_one_error(monkeypatch):
    distributed = pytest.importorskip("distributed")

    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(QkvError, match=r"does not answer \(AssertionError"):
        WorkerPool(cluster="ws://localhost:1")


def test_a_cluster_without_workers_is_one_error():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
        pytest.raises(QkvError, match="it has no workers"),
    ):
        copyable(gaussian(5, 2), cluster=cluster.scheduler_address)


def test_a_cluster_that_gives_up_is_one_error(monkeypatch):
    distributed = pytest.importorskip("distributed")

    class Client:
        """A cluster whose workers die of every piece of work."""

        def __init__(self, *_, **__):
            pass

        def ncores(self):
            return {"worker": 1}

        def get_executor(self, pure):
            return self

        def scatter(self, shared, **_):
            return shared

        def submit(self, *_):
            failed = Future()
            failed.set_exception(distributed.scheduler.KilledWorker("piece", None, 1))
            return failed

        def shutdown(self, wait):
            pass

        def close(self):
            pass

    monkeypatch.setattr(distributed, "Client", Client)
    with pytest.raises(QkvError, match=r"the cluster gave up \(KilledWorker"), WorkerPool(cluster="tcp://x:1") as pool:
        pool.map(operator.neg, 1, [()], None)


@pytest.mark.slow
def test_threads_that_use_processes_at_once_leave_environment_and_main_module_alone():
    """Starting workers must not be visible to other threads: not in os.environ, not in sys.modules["__main__"]."""
    keys = gaussian(300, 6, seed=3)
    expected = copyable(keys, processes=1)
    environment, main = dict(os.environ), sys.modules["__main__"]
    changes, errors, results = [], [], []
    stop = threading.Event()

    def watch():
        while not stop.is_set():
            if dict(os.environ) != environment or sys.modules["__main__"] is not main:
                changes.append(1)
            pickle.dumps(add)  # the caller's own functions stay picklable all the while

    def work():
        try:
            results.append(copyable(keys, processes=2))
        except BaseException as error:
            errors.append(error)

    watcher = threading.Thread(target=watch)
    threads = [threading.Thread(target=work) for _ in range(4)]
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    watcher.join()
    assert not errors and not changes
    assert dict(os.environ) == environment and sys.modules["__main__"] is main
    assert pickle.loads(pickle.dumps(add)) is add  # noqa: S301
    assert len(results) == 4
    for found in results:
        assert torch.equal(found.possible, expected.possible) and torch.equal(found.queries, expected.queries)


INSIDE_DAEMON = """
import multiprocessing, sys
import numpy as np
from qkv.design.hull.selectable import copyable
from qkv.parallel import WorkerPool


def work(pipe):
    assert multiprocessing.current_process().daemon
    keys = np.random.default_rng(0).standard_normal((100, 6))
    pipe.send([WorkerPool().size, *(int(copyable(keys, processes=p).possible.sum()) for p in (None, 1, 2))])

if __name__ == "__main__":
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=work, args=(there,), daemon=True)
    process.start()
    print(here.recv() if here.poll(60) else "nothing came")
    process.join()
"""


@pytest.mark.slow
def test_inside_a_daemonic_process_no_processes_are_started_unless_they_are_requested(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(INSIDE_DAEMON)
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    size, *counts = eval(run.stdout)  # noqa: S307
    assert size == 1, run.stderr
    assert len(set(counts)) == 1 and 0 < counts[0] < 100


SCRIPT = """
import os, numpy as np
from qkv import parallel
from qkv.design.hull import cascade
print("script", os.getpid(), flush=True)
keys = np.random.default_rng(0).standard_normal(({n}, 14))
with parallel.WorkerPool(processes=2) as pool:
    out = cascade.decide_all(keys, pool, lambda done, total: print("piece", done, total, flush=True))
print("vertices", int(out.possible.sum()), flush=True)
"""


def run_script(tmp_path, n):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(n=n))
    return subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_script_without_a_guard_runs_once(tmp_path):
    process = run_script(tmp_path, 400)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.count("script") == 1
    assert "vertices" in out


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("how", some([signal.SIGINT, signal.SIGKILL], [signal.SIGINT]))
def test_no_process_outlives_the_call(tmp_path, how):
    process = run_script(tmp_path, 12000)
    children = []
    deadline = time.monotonic() + 30
    while len(children) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
        children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    time.sleep(1.0)
    process.send_signal(how)
    process.communicate(timeout=30)
    _, alive = psutil.wait_procs(children, timeout=15)
    assert not alive
    assert process.returncode != 0


FORSAKEN = """
import os, time
from concurrent.futures import ProcessPoolExecutor
import multiprocessing
from qkv.parallel import exit_with_parent

if __name__ == "__main__":
    pool = ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), initializer=exit_with_parent)
    futures = [pool.submit(time.sleep, 60) for _ in range(2)]
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_children_of_multiprocessing_end_with_a_parent_that_was_killed(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(FORSAKEN)
    process = subprocess.Popen([sys.executable, path])
    found = []
    deadline = time.monotonic() + 30
    while len(found) < 3 and time.monotonic() < deadline:  # two workers and multiprocessing's resource tracker
        time.sleep(0.05)
        found = psutil.Process(process.pid).children(recursive=True)
    time.sleep(1.0)
    process.kill()
    process.wait(timeout=30)
    _, alive = psutil.wait_procs(found, timeout=15)
    assert len(found) == 3 and not alive


def test_in_a_process_without_a_parent_there_is_nothing_to_wait_for():
    before = threading.active_count()
    parallel.exit_with_parent()
    assert multiprocessing.parent_process() is not None or threading.active_count() == before


def test_a_pool_of_multiprocessing_works_with_the_watch():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=parallel.exit_with_parent) as pool:
        assert pool.submit(operator.neg, 3).result(timeout=60) == -3


@pytest.mark.slow
def test_many_clusters_that_do_not_answer_leave_nothing_for_the_garbage_collector(monkeypatch):
    """A failed client that is collected while another one starts would wait for itself."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(parallel, "CLUSTER_TIMEOUT", 0.2)
    for _ in range(3):
        with pytest.raises(QkvError, match="does not answer"):
            WorkerPool(cluster="tcp://127.0.0.1:1")
        assert not [c for c in gc.get_objects() if isinstance(c, distributed.Client) and c.status != "closed"]


def test_a_cluster_whose_workers_with_the_data_are_gone_is_told_in_a_sentence():
    """Dask cancels what needs data that only killed workers held."""

    class Gone:
        def submit(self, *work):
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    pool = WorkerPool(processes=1)
    pool._executor = Gone()
    pool._client = SimpleNamespace(scatter=lambda shared, **options: shared)
    with pytest.raises(QkvError, match=r"that held its data are gone.*Start it again"):
        pool.map(operator.add, 1, [(1,), (2,)], None)
