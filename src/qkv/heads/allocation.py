"""Bits for each channel of the keys under an average, where the whole model needs them most."""

from __future__ import annotations

import base64
import binascii
import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number
from qkv.core.files import write_text
from qkv.core.json_files import read_json, verified, with_checksum
from qkv.core.validation import finite, whole
from qkv.errors import QkvError, QkvWarning
from qkv.heads.attention_model import checked_model
from qkv.heads.divergence import mean_kls
from qkv.heads.fingerprint import Fingerprint
from qkv.heads.forecast import forecasts
from qkv.heads.key_grid import MAX_BITS, key_grid
from qkv.heads.patterns import checked_seed
from qkv.heads.rounding import share_text
from qkv.heads.sensitivity import KeyGradients, Sensitivity, key_gradients, own_basis, sensitivity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qkv.heads.attention_model import AttentionModel, HeadShape, Progress

FORMAT, VERSION = "qkv key bits", 3
READ = (2, 3)
"""Versions that can be read; files of version 2 do not say which model they are for, nor in how many windows it was
calibrated."""
FEWEST = 2
"""Least bits of a channel, if the average is above: coarser rounding is beyond what second order can predict."""
UNKNOWN_MODEL = "Which model these bits are for is not known beyond its name: the file says nothing of its weights."
RUN = 32
"""Tokens in a row that make two texts the same text."""
NUMBERS = (
    "average", "predicted_kl", "forecast_kl", "forecast_spread", "measured_kl", "uniform_predicted_kl",
    "uniform_forecast_kl", "uniform_forecast_spread", "uniform_kl",
)  # fmt: skip
COUNTS = ("uniform_bits", "calibration_tokens", "evaluation_tokens", "samples", "draws", "seed")


@dataclass(frozen=True, eq=False)
class Allocation(Displayable):
    """Bits of each channel of the keys of a model.

    Attributes:
        model: The model's name.
        average: Bits of a channel on average, at most; grids and the tokens that a cache keeps whole come on top.
        bits: From 1 to 8, (layers, key heads, size).
        basis: Matrices that take a key to the coordinates that are rounded, (layers, key heads, size, size); None if
            keys are rounded channel by channel.
        predicted_kl: KL divergence of the whole model, in nats per token, that is expected on the calibration text:
            half of its windows allocate, errors are drawn on the other half, and the other way round. Another text may
            differ.
        forecast_kl: What is expected on the evaluation text, with errors drawn in place of rounding; see `forecast`.
        forecast_spread: Standard deviation of it over the draws.
        measured_kl: What was measured there, with keys rounded as the packed cache stores them.
        uniform_bits: The same bits for all channels, to compare with: the average, rounded up.
        uniform_predicted_kl: Expected on the calibration text with these, channel by channel.
        uniform_forecast_kl: Expected on the evaluation text with these.
        uniform_forecast_spread: Standard deviation of it over the draws.
        uniform_kl: Measured on the evaluation text with these.
        calibration_tokens: Tokens that the allocation was made from.
        evaluation_tokens: Other tokens, that the KL divergence was measured on: windows that share a run of 32 tokens
            with the calibration text are left out.
        samples: Backward passes of each window.
        draws: Draws of errors for each forecast.
        seed: Of the drawn tokens and errors.
        calibration_windows: Windows that the allocation was made from. A single one judges the bits that it chose
            itself, and `predicted_kl` may be too low; None if that is not known.
        fingerprint: Which model the bits are for; None if that is not known.
    """

    model: str
    average: float
    bits: Tensor = field(repr=False)
    basis: Tensor | None = field(repr=False)
    predicted_kl: float
    forecast_kl: float
    forecast_spread: float
    measured_kl: float
    uniform_bits: int
    uniform_predicted_kl: float
    uniform_forecast_kl: float
    uniform_forecast_spread: float
    uniform_kl: float
    calibration_tokens: int
    evaluation_tokens: int
    samples: int
    draws: int
    seed: int
    calibration_windows: int | None = None
    fingerprint: Fingerprint | None = field(default=None, repr=False)

    @property
    def mean_bits(self) -> float:
        """Bits of a channel on average."""
        return float(self.bits.double().mean())

    def to_json(self) -> dict[str, Any]:
        """The fields, the mean bits of each key head, and how many channels have how many bits."""
        counts = {str(b): int((self.bits == b).sum()) for b in range(1, MAX_BITS + 1)}
        heads = self.bits.double().mean(-1).tolist()
        return {
            **super().to_json(), "mean_bits": self.mean_bits, "own_basis": self.basis is not None,
            "channels_with_bits": counts, "head_bits": heads,
        }  # fmt: skip

    def card(self) -> Card:
        shares = ", ".join(
            f"{b}: {share_text(float((self.bits == b).double().mean()))}"
            for b in range(1, MAX_BITS + 1)
            if (self.bits == b).any()
        )
        what = "coordinates of each head's own basis" if self.basis is not None else "channels"
        heads = self.bits.double().mean(-1)
        passes = f"{self.samples} backward pass{'es' if self.samples > 1 else ''}"
        alone = ", which judges its own bits" if self.calibration_windows == 1 else ""
        count = self.calibration_windows
        windows = "" if count is None else f" in {count} window{'s' if count > 1 else ''}{alone}"
        facts = (
            ("average", f"{self.mean_bits:.3f} bits of {self.bits.numel()} {what}"),
            ("bits", shares),
            ("key heads", f"{float(heads.min()):.2f} to {float(heads.max()):.2f} bits on average"),
            ("calibrated on", f"{self.calibration_tokens} tokens{windows}; {passes} of each window"),
            ("measured on", f"{self.evaluation_tokens} other tokens"),
        )

        def with_spread(kl: float, spread: float) -> str:
            return f"{number(kl, 3)} ± {number(spread, 1)}"

        expected = with_spread(self.forecast_kl, self.forecast_spread)
        even = with_spread(self.uniform_forecast_kl, self.uniform_forecast_spread)
        rows = (
            ("allocated", f"{self.mean_bits:.2f}", number(self.predicted_kl, 3), expected, number(self.measured_kl, 3)),
            (
                "uniform",
                str(self.uniform_bits),
                number(self.uniform_predicted_kl, 3),
                even,
                number(self.uniform_kl, 3),
            ),
        )
        columns = ("", "bits", "KL expected from calibration", "expected for this text", "measured")
        note = (
            "KL divergence of next-token probabilities from the model's own with all keys rounded, in nats per token. "
            "Expected: with errors in place of rounding, independent and uniform within half a step; mean ± standard "
            f"deviation of {self.draws} draws. From the calibration text alone it cannot know how other texts differ; "
            "for this text it is found on the text that is measured on, before rounding. An estimate, no bound."
        )
        if self.fingerprint is None:
            note += f" {UNKNOWN_MODEL}"
        return Card(f"Key bits of {self.model}", facts, columns, rows, note)

    def save(self, path: str | Path) -> None:
        """Write the allocation as JSON with a checksum."""
        basis = None
        if self.basis is not None:
            basis = base64.b64encode(self.basis.float().contiguous().numpy().astype("<f4").tobytes()).decode("ascii")
        content = {
            "format": FORMAT, "version": VERSION, "model": self.model, "shape": list(self.bits.shape),
            **{name: getattr(self, name) for name in (*NUMBERS, *COUNTS)},
            "bits": self.bits.tolist(), "basis": basis, "calibration_windows": self.calibration_windows,
            "fingerprint": None if self.fingerprint is None else self.fingerprint.to_json(),
        }  # fmt: skip
        write_text(path, json.dumps(with_checksum(content), allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Allocation:
        """Read a file that `save` wrote.

        Raises:
            QkvError: The file cannot be read, is damaged, or holds something else.
        """
        request = f"reading key bits from {path}"
        try:
            return cls._checked(verified(read_json(Path(path))))
        except FileNotFoundError:
            raise QkvError(request, "there is no such file", "Write it with --allocate … --out") from None
        except (OSError, ValueError, RecursionError) as why:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
            raise QkvError(
                request,
                getattr(why, "strerror", None) or str(why),
                "Write it again with --allocate … --out, or restore it",
            ) from None

    @classmethod
    def _checked(cls, content: dict[str, Any]) -> Allocation:
        """An allocation from the content of a file; ValueError if it is none."""
        known = {"format", "version", "model", "shape", *NUMBERS, *COUNTS, "bits", "basis"}
        if content.get("format") != FORMAT or content.get("version") not in READ:
            raise ValueError(f"it is no file of the format {FORMAT!r}, version {' or '.join(map(str, READ))}")
        if content["version"] == VERSION:
            known |= {"calibration_windows", "fingerprint"}
        if set(content) != known:
            odd = sorted(set(content) ^ known)
            raise ValueError(f"fields are missing or unknown: {', '.join(odd)}")
        model, shape = content["model"], content["shape"]
        if not isinstance(model, str):
            raise ValueError("the model's name is no text")
        if (
            not isinstance(shape, list)
            or len(shape) != 3
            or not all(type(n) is int and 1 <= n <= 1 << 16 for n in shape)
        ):
            raise ValueError("shape is not layers, key heads and size")
        for name in NUMBERS:
            if type(content[name]) not in (int, float) or not math.isfinite(content[name]):
                raise ValueError(f"{name} is no finite number")
        for name in COUNTS:
            if type(content[name]) is not int or content[name] < 0:
                raise ValueError(f"{name} is no whole number")
        bits = _bits_of(content["bits"], tuple(shape))
        if float(bits.double().mean()) > content["average"] + 1e-9:
            raise ValueError(f"bits are {float(bits.double().mean()):.6g} on average, more than {content['average']}")
        basis = _basis_of(content["basis"], (*shape, shape[-1]))
        windows, told = content.get("calibration_windows"), content.get("fingerprint")
        if windows is not None and (type(windows) is not int or windows < 1):
            raise ValueError("calibration_windows is no whole number")
        return cls(
            model=model, bits=bits, basis=basis, **{name: content[name] for name in (*NUMBERS, *COUNTS)},
            calibration_windows=windows, fingerprint=None if told is None else Fingerprint.from_json(told),
        )  # fmt: skip


def _bits_of(value: Any, shape: tuple[int, ...]) -> Tensor:
    def checked(part: Any, sizes: tuple[int, ...]) -> None:
        if not sizes:
            if type(part) is not int or not 1 <= part <= MAX_BITS:
                raise ValueError(f"bits are whole numbers from 1 to {MAX_BITS}, not {part!r:.20}")
        elif not isinstance(part, list) or len(part) != sizes[0]:
            raise ValueError("bits do not have the shape that is given")
        else:
            for one in part:
                checked(one, sizes[1:])

    checked(value, shape)
    return torch.tensor(value, dtype=torch.uint8)


def _basis_of(value: Any, shape: tuple[int, ...]) -> Tensor | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError("basis is no text")
    try:
        content = base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError("basis is not in base64") from None
    if len(content) != 4 * math.prod(shape):
        raise ValueError(f"basis has {len(content)} bytes, not {4 * math.prod(shape)}")
    basis = torch.from_numpy(np.frombuffer(content, dtype="<f4").astype(np.float64)).reshape(shape)
    if not bool(basis.isfinite().all()) or not bool((torch.linalg.matrix_rank(basis) == shape[-1]).all()):
        raise ValueError("basis has matrices that cannot be inverted")
    return basis


def spread_bits(cost: NDArray[np.float64], average: float, fewest: int) -> NDArray[np.int64]:
    """Bits of each channel that make the sum of costs small under an average.

    Starts with the fewest bits and spends the rest where a bit saves most, along the lower convex hull of each
    channel's cost: this solves the Lagrangian problem for every multiplier on its way, and is optimal among all
    allocations with as many bits as it spends on whole steps of the hulls.

    Args:
        cost: (8, channels), for 1 to 8 bits.
        average: Bits of a channel on average, at most.
        fewest: Least bits of a channel.

    Returns:
        (channels,), from `fewest` to 8.
    """
    channels = cost.shape[1]
    found = np.full(channels, fewest, dtype=np.int64)
    left = math.floor(average * channels + 1e-9) - fewest * channels
    steps = []
    for channel in range(channels):
        at = fewest
        while at < MAX_BITS:
            own = cost[at - 1, channel] - cost[at:, channel]
            rate = own / np.arange(1, MAX_BITS - at + 1)
            best = int(rate.argmax()) + 1
            if rate[best - 1] <= 0:
                break
            steps.append((-float(rate[best - 1]), channel, at, at + best))
            at += best
    for _, channel, start, end in sorted(steps):
        if found[channel] == start and end - start <= left:
            found[channel] = end
            left -= end - start
    return found


@dataclass(frozen=True, eq=False)
class CheapestBits:
    """An allocation for given gradients.

    Attributes:
        bits: (layers, key heads, size).
        sensitivity: What it was made from.
        predicted_kl: KL divergence in nats per token to second order, which is too little where channels are coarse.
            What was cheapest on one half of the calibration text is judged on the other half: its cost on the text that
            chose it would be too low.
        of_halves: The bits and the basis that each half alone would choose; empty if there are no halves.
    """

    bits: Tensor
    sensitivity: Sensitivity
    predicted_kl: float
    of_halves: tuple[tuple[Tensor, Tensor | None], ...]


@dataclass(frozen=True, eq=False)
class Calibration:
    """What rounding costs on a text, and on the halves of it.

    Attributes:
        whole: On the whole text.
        halves: Pairs of what chooses and what judges: each half, and the other half in the same basis.
    """

    whole: Sensitivity
    halves: tuple[tuple[Sensitivity, Sensitivity], ...]

    @classmethod
    def of(cls, gradients: KeyGradients, in_own_basis: bool = False) -> Calibration:
        """The costs from gradients.

        Args:
            gradients: From `key_gradients`.
            in_own_basis: Whether to round coordinates of the keys' own basis.
        """

        def found(part: KeyGradients) -> Sensitivity:
            return sensitivity(part, own_basis(part) if in_own_basis else None)

        parts = gradients.halves()
        if parts is None:
            return cls(found(gradients), ())
        one, two = found(parts[0]), found(parts[1])
        if not in_own_basis:
            return cls(found(gradients), ((one, two), (two, one)))
        judges = sensitivity(parts[1], one.basis), sensitivity(parts[0], two.basis)
        return cls(found(gradients), ((one, judges[0]), (two, judges[1])))

    def cheapest(self, average: float) -> CheapestBits:
        """Bits where the model's KL divergence needs them, and a prediction of it.

        Args:
            average: Bits of a channel on average, at most.
        """

        def chosen(found: Sensitivity) -> Tensor:
            spread = spread_bits(found.cost.flatten(1).numpy(), average, FEWEST if average > FEWEST else 1)
            return torch.from_numpy(spread).reshape(found.cost.shape[1:]).to(torch.uint8)

        bits = chosen(self.whole)
        halves = tuple((chosen(chooser), chooser.basis) for chooser, _ in self.halves)
        judged = [float(judge.kl(own).sum()) for (own, _), (_, judge) in zip(halves, self.halves, strict=True)]
        predicted = sum(judged) / len(judged) if judged else float(self.whole.kl(bits).sum())
        return CheapestBits(bits, self.whole, predicted, halves)


def rounded_keys(bits: Tensor, basis: Tensor | None = None) -> Any:
    """For `AttentionModel.run`: keys rounded with these bits, each window with grids of its own.

    Grids are numbers of 16 bits, as a packed cache with one block for the window stores them.

    Args:
        bits: (layers, key heads, size).
        basis: The basis whose coordinates are rounded; None for the channels themselves.
    """
    inverse = None if basis is None else torch.linalg.inv(basis.double())

    def change(layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        own = bits[layer][None, :, None, :]
        if basis is None or inverse is None:
            return key_grid(key.float(), own, stored=True).rounded(key.float()).to(key.dtype), value
        coordinates = (key.double() @ basis[layer].double().mT).float()
        rounded = key_grid(coordinates, own, stored=True).rounded(coordinates)
        return (rounded.double() @ inverse[layer].mT).to(key.dtype), value

    return change


def allocate(
    model: AttentionModel,
    text: str | Sequence[str],
    average: float = 3,
    *,
    evaluation: str | Sequence[str] | None = None,
    in_own_basis: bool = False,
    window: int | None = None,
    samples: int = 2,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Allocation:
    """Allocate bits to the channels of a model's keys, and measure what that costs on another text.

    Args:
        model: From `qkv.heads.open`; it predicts the next token.
        text: The text that the allocation is made from; without `evaluation`, its first half.
        average: Bits of a channel on average, from above 1 to 8.
        evaluation: Another text, to measure on; the second half of `text` if None.
        in_own_basis: Whether to round coordinates of the keys' own basis (Fisher information and key covariance).
        window: Tokens of a window; at most 512, the model's context and half of the text if None.
        samples: Backward passes of each window.
        seed: Of the tokens that are drawn for them.
        progress: Called with steps done and in all.

    Returns:
        The bits, with the KL divergence that they predict and cost, beside uniform bits.

    Raises:
        QkvError: The model predicts no tokens, the average is out of range, or half of the evaluation text was
            calibrated on; see `split_windows`.
    """
    request = "allocating key bits"
    model = checked_model(request, model, predicts=True)
    average = finite(request, "average", average)
    if not 1 < average <= MAX_BITS:
        raise QkvError(request, f"the average is {average:g}", f"Give an average above 1 and at most {MAX_BITS}")
    samples, seed = whole(request, "samples", samples), checked_seed(request, seed)
    calibration, other = split_windows(model, text, evaluation, window)
    steps = len(calibration) + 3
    gradients = key_gradients(model, calibration, samples, seed, lambda done, _: progress(done, steps))
    found = Calibration.of(gradients, in_own_basis).cheapest(average)
    bits, basis = found.bits, found.sensitivity.basis
    even = math.ceil(average)
    uniform = torch.full_like(bits, even)
    predicted, uniform_predicted = expected_on_calibration(model, calibration, found, uniform, seed)
    progress(steps - 2, steps)
    expected, uniform_expected = forecasts(model, other, [(bits, basis), (uniform, None)], seed=seed)
    progress(steps - 1, steps)
    measured, uniform_kl = mean_kls(model, other, [rounded_keys(bits, basis), rounded_keys(uniform)])
    progress(steps, steps)
    return Allocation(
        model=model.name,
        average=average,
        bits=bits,
        basis=basis,
        predicted_kl=predicted,
        forecast_kl=expected.kl,
        forecast_spread=expected.spread,
        measured_kl=measured,
        uniform_bits=even,
        uniform_predicted_kl=uniform_predicted,
        uniform_forecast_kl=uniform_expected.kl,
        uniform_forecast_spread=uniform_expected.spread,
        uniform_kl=uniform_kl,
        calibration_tokens=sum(map(len, calibration)),
        evaluation_tokens=sum(map(len, other)),
        samples=samples,
        draws=expected.draws,
        seed=seed,
        calibration_windows=len(calibration),
        fingerprint=Fingerprint.of(model.model),
    )


def expected_on_calibration(
    model: AttentionModel, windows: Sequence[Tensor], found: CheapestBits, uniform: Tensor, seed: int
) -> tuple[float, float]:
    """The KL divergence expected on the calibration text, with allocated bits and with uniform ones.

    Bits that one half of the windows chose are judged on the other half, as `KeyGradients.halves` parts them; a single
    window judges what it chose.
    """
    if len(windows) > 1:
        parts = [(windows[1::2], found.of_halves[0]), (windows[0::2], found.of_halves[1])]
    else:
        parts = [(windows, (found.bits, found.sensitivity.basis))]
    tokens = [sum(map(len, part)) for part, _ in parts]
    kls = [[f.kl for f in forecasts(model, part, [own, (uniform, None)], seed=seed)] for part, own in parts]
    own, even = ((sum(n * kl[at] for n, kl in zip(tokens, kls, strict=True)) / sum(tokens)) for at in (0, 1))
    return own, even


def split_windows(
    model: AttentionModel, text: str | Sequence[str], evaluation: str | Sequence[str] | None, window: int | None
) -> tuple[list[Tensor], list[Tensor]]:
    """Windows to calibrate on, and windows to measure on that share no run of `RUN` tokens with them.

    Of texts with less than twice as many tokens, half of the shorter one is a run. Windows that share a run, wherever
    it stands in either text, are left out of the measurement.

    Raises:
        QkvError: Half or more of the windows to measure on share a run, or the text is too short for two windows.
    """
    request = "separating the calibration text from the evaluation text"
    if evaluation is None:
        if window is None:
            shortest = max(2, sum(map(len, model.windows(text))) // 2)
            window = min(len(model.windows(text)[0]), shortest)
        found = model.windows(text, window)
        first, second = found[: len(found) // 2], found[len(found) // 2 :]
        if not first:
            raise QkvError(request, "the text has one window only", "Give a longer text or a smaller window")
    else:
        first, second = model.windows(text, window), model.windows(evaluation, window)
    run = min(RUN, max(2, min(sum(map(len, first)), sum(map(len, second))) // 2))
    shared = _share_a_run(first, second, run)
    if 2 * sum(shared) >= len(second):
        which = f"{sum(shared)} of the {len(second)} windows that would be measured on were calibrated on"
        if len(second) == 1:
            which = "the window that would be measured on was calibrated on"
        problem = f"{which}, in part or as a whole: {run} tokens in a row stand in the calibration text as well"
        raise QkvError(request, problem, "Give different texts")
    return first, [ids for ids, common in zip(second, shared, strict=True) if not common]


def _share_a_run(first: Sequence[Tensor], second: Sequence[Tensor], run: int) -> list[bool]:
    """Which of the second windows have a token of some run that stands in the first windows as well."""
    one, two = (np.concatenate([ids.numpy() for ids in windows]) for windows in (first, second))
    known = {part.tobytes() for part in np.lib.stride_tricks.sliding_window_view(one, run)}
    common = np.zeros(len(two), dtype=bool)
    for start, part in enumerate(np.lib.stride_tricks.sliding_window_view(two, run)):
        if part.tobytes() in known:
            common[start : start + run] = True
    ends = np.cumsum([len(ids) for ids in second])[:-1]
    return [bool(part.any()) for part in np.split(common, ends)]


def check_shape(request: str, allocation: Allocation, shape: HeadShape) -> None:
    """Refuse an allocation for a model with other heads."""
    own, wanted = tuple(allocation.bits.shape), (shape.layers, shape.key_heads, shape.size)
    if own != wanted:
        problem = f"the bits are for {own[0]} layers, {own[1]} key heads and size {own[2]}, the model has {wanted}"
        raise QkvError(request, problem, "Allocate bits for this model")


def check_model(request: str, allocation: Allocation, model: torch.nn.Module) -> None:
    """Refuse an allocation for a model with other weights; warn if the allocation does not know its model.

    What its card says of the KL divergence holds for the model that it was made from.
    """
    own = Fingerprint.of(model)
    if allocation.fingerprint is None or own is None:
        problem = UNKNOWN_MODEL if own is not None else "The model's weights cannot be compared with those of the bits."
        warnings.warn(f"{request}: the bits of {allocation.model}. {problem}", QkvWarning, stacklevel=4)
    elif not allocation.fingerprint.fits(own):
        problem = f"the bits are for {allocation.model}, and this model has other weights"
        raise QkvError(request, problem, "Allocate bits for this model, or take them all the same: any_model=True")
