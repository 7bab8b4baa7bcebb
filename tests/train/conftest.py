"""A small text, and runs of a few steps on it."""

import os
import sys

import pytest

from qkv.model.config import ModelConfig
from qkv.train.settings import TrainSettings

PLACES = ("Paris", "Rome", "Oslo", "Łódź")


def write_text(folder):
    """Sixty short documents, as a file in a folder."""
    path = folder / "text.txt"
    path.write_text("\n".join(f"Person {i} was born in {PLACES[i % 4]} in {1800 + i}." for i in range(60)), "utf-8")
    return path


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path)


@pytest.fixture(scope="module")
def shared_text(tmp_path_factory):
    """The same for the tests of a module that do not change it."""
    return write_text(tmp_path_factory.mktemp("text"))


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.tsv"
    path.write_text("\n".join(f"Where was person {i} born?\t{PLACES[i % 4]}" for i in range(40)), "utf-8")
    return path


@pytest.fixture
def config():
    return ModelConfig(n_layer=2, n_head=2, d_model=32, context_length=48, dropout=0.1)


@pytest.fixture
def settings():
    return TrainSettings(steps=12, batch_size=8, log_every=2, validate_every=5, checkpoint_every=4, val_fraction=0.1)


OPERATIONS = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def killed_before(at, folder, call):
    """Whether `call`, in another process, came to its file operation number `at` in a folder, and was ended there."""
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 9), code
        return code == 9
    try:
        count = 0

        def hook(event, arguments):
            nonlocal count
            writes = event in OPERATIONS or (event == "open" and arguments[2] and arguments[2] & WRITING)
            if writes and any(str(each).startswith(str(folder)) for each in arguments):
                count += 1
                if count == at:
                    os._exit(9)

        sys.addaudithook(hook)
        call()
        os._exit(0)
    finally:
        os._exit(1)


@pytest.fixture
def killed():
    return killed_before


@pytest.fixture
def contents():
    def read(folder):
        """Every file in a folder by its name, and where a link leads that has lost its file."""
        return {
            str(path.relative_to(folder)): path.read_bytes()
            if path.is_file()
            else path.is_symlink() and path.readlink()
            for path in folder.rglob("*")
        }

    return read
