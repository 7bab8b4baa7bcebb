"""The options that describe noise on keys, the same for every command: read from the command line or from a file."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from qkv.cli.common import array_from, arrays_of, by_label, numbers_by_item
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.core.memory import Memory
    from qkv.noise.key_noise import Noise

NAMES = ("isotropic", "along", "bits", "covariance")
"""What a file of noise may hold."""


@dataclasses.dataclass(frozen=True)
class GivenNoise:
    """Noise on the keys of a memory as it was given, and as a document of --json holds it.

    Attributes:
        isotropic: Variance of every key in every direction.
        along: Variances of keys along themselves, by label.
        bits: Bits to which keys are rounded, instead of the others.
        covariance: A covariance (d, d) for all keys, or (n, d, d).
    """

    isotropic: float = 0.0
    along: dict[Any, float] = dataclasses.field(default_factory=dict)
    bits: int | None = None
    covariance: Any = None

    def model(self, memory: Memory) -> Noise:
        """The noise model for a memory."""
        from qkv.noise.key_noise import Gaussian, Quantised

        given = self.isotropic or self.along or self.covariance is not None
        if self.bits is not None:
            if given:
                raise QkvError("noise from --bits", "another kind of noise was given too", "Give one kind of noise")
            return Quantised(self.bits)
        if not given:
            hint = "Give --isotropic, --along, --covariance, --bits or --noise"
            raise QkvError("reading under noise", "no noise was given, or noise of size 0", hint)
        full: Any = None
        if self.covariance is not None:
            from qkv.design.specs import covariances

            full = dict(zip(memory.labels, covariances(self.covariance, memory.n, memory.d), strict=True))
        return Gaussian(isotropic=self.isotropic, along=self.along or None, full=full)

    def to_json(self) -> dict[str, Any]:
        """The noise by name, as --noise reads it."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class NoiseOptions:
    """The options that describe the noise on the keys."""

    isotropic: Annotated[float, typer.Option(help="Variance of every key in every direction.")] = 0.0
    along: Annotated[str, typer.Option(help="Variance of keys along themselves, such as 0=0.5: 0.5 μ₀μ₀ᵀ.")] = ""
    bits: Annotated[int | None, typer.Option(help="Instead: keys rounded channel by channel to so many bits.")] = None
    covariance: Annotated[
        str | None, typer.Option(help="File with a covariance (d, d) for all keys, or (n, d, d).")
    ] = None
    noise_file: Annotated[
        Path | None,
        typer.Option(
            "--noise", help="Instead of all these: a JSON file with them by name, or the result of a noise command."
        ),
    ] = None

    def read(self, memory: Memory) -> GivenNoise:
        """The noise that was given for a memory, with files read."""
        if self.noise_file is not None:
            if self != NoiseOptions(noise_file=self.noise_file):
                problem = "another kind of noise was given too"
                raise QkvError(f"noise from {self.noise_file}", problem, "Give one kind of noise")
            return _noise_in(self.noise_file, memory)
        covariance = None if self.covariance is None else array_from(self.covariance, "covariance", {})
        return GivenNoise(
            self.isotropic, numbers_by_item(memory, "--along", "variance", self.along), self.bits, covariance
        )


NO_NOISE = NoiseOptions()


def noise_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `noise: NoiseOptions` of a command by one option for each field of NoiseOptions.

    Typer builds options from a signature, so the signature of the wrapper lists the fields in place of the parameter.
    """
    hints, fields = get_type_hints(command, include_extras=True), dataclasses.fields(NoiseOptions)
    field_hints = get_type_hints(NoiseOptions, include_extras=True)
    parameters = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == "noise":
            for field in fields:
                hint, default = field_hints[field.name], field.default
                parameters.append(inspect.Parameter(field.name, parameter.kind, default=default, annotation=hint))
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))

    @functools.wraps(command)
    def wrapper(**options: Any) -> None:
        noise = NoiseOptions(**{field.name: options.pop(field.name) for field in fields})
        command(noise=noise, **options)

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def _noise_in(path: Path, memory: Memory) -> GivenNoise:
    """The noise in a JSON file: an object with some of NAMES, or the result of a noise command."""
    from qkv.core.validation import finite, shown, tensor

    request = f"reading noise from {path}"
    hint = f"Give a JSON object with some of {', '.join(NAMES)}"
    arrays = arrays_of(path)
    found = arrays.get("noise", arrays)
    if not isinstance(found, dict) or not found or set(found) - set(NAMES):
        held = ", ".join(sorted(map(str, found))) if isinstance(found, dict) else shown(found)
        raise QkvError(request, f"it holds {held or 'nothing'}", hint)
    given = {name: value for name, value in found.items() if value is not None}
    along, bits = given.get("along", {}), given.get("bits")
    if not isinstance(along, dict):
        raise QkvError(request, f"along is {shown(along)}", "Give an object of items and variances")
    if isinstance(bits, bool) or not isinstance(bits, int | None):
        raise QkvError(request, f"bits is {shown(bits)}", "Give a whole number")
    variances = by_label(request, memory, [(n, finite(request, f"along {n}", v)) for n, v in along.items()])
    covariance = tensor("covariance", given["covariance"]).numpy() if "covariance" in given else None
    isotropic = finite(request, "isotropic", given.get("isotropic", 0.0))
    return GivenNoise(isotropic, variances, bits, covariance)
