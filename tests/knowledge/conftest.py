"""A small run that is trained on thirty people and on questions about them."""

import pytest

from qkv.knowledge import biographies, pantheon, questions, train_mixed
from qkv.model.config import ModelConfig
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import BytePairs


@pytest.fixture(scope="session")
def people():
    return pantheon().sample(30, seed=1)


@pytest.fixture(scope="session")
def train_run(people, tmp_path_factory):
    """A function that trains a model with a kind of attention, once per session."""
    made = {}

    def train(attention="rope", steps=160):
        if (attention, steps) not in made:
            texts, asked = biographies(people, 2, order="permuted").texts, questions(people).pairs
            made[attention, steps] = train_mixed(
                tmp_path_factory.mktemp("runs") / attention, texts, asked, 0.5,
                config=ModelConfig(attention=attention, n_layer=2, n_head=2, d_model=48, context_length=80, latents=10),
                settings=TrainSettings(steps=steps, batch_size=16, lr=8e-3, objective="next", val_fraction=0.0),
                tokenizer=BytePairs.train([*texts, *(q for q, _ in asked)], 700),
            )  # fmt: skip
        return made[attention, steps]

    return train


@pytest.fixture(scope="session")
def run(train_run):
    return train_run()


@pytest.fixture
def contents():
    def read(folder):
        """Every file and folder in a folder by its name: the bytes of files, and where links lead."""
        return {
            str(path.relative_to(folder)): path.readlink()
            if path.is_symlink()
            else path.is_file() and path.read_bytes()
            for path in folder.rglob("*")
        }

    return read
