"""Processes of the server: one thread, no reaction to SIGINT, no life after the server."""

import contextlib
import subprocess
import sys
import time

import psutil
import pytest
from marks import some

SERVER = """
import multiprocessing, os, signal, sys, time

def work(pipe):
    from qkv.web.worker_process import initialise_worker

    initialise_worker()
    import torch

    os.kill(os.getpid(), signal.SIGINT)  # ignored: the next line is reached
    pipe.send((os.getpid(), torch.get_num_threads(), os.environ["OMP_NUM_THREADS"]))
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=work, args=(theirs,)).start()
    print(*ours.recv(), flush=True)
    os.kill(os.getpid(), int(sys.argv[1]))
"""


@pytest.mark.parametrize("signal", some([9, 15], [9]))
def test_a_worker_has_one_thread_ignores_sigint_and_ends_with_its_parent(tmp_path, signal):
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    command = [sys.executable, tmp_path / "server.py", str(signal)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120)
    pid, torch_threads, omp_threads = map(int, done.stdout.split())
    assert done.returncode == -signal and (torch_threads, omp_threads) == (1, 1)
    end = time.monotonic() + 10
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end, "the worker outlives its parent"
            time.sleep(0.05)
