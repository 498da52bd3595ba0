"""What arguments may be. Names for annotations; nothing here runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union

import numpy
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ._native import Dataset, Predictions, Split

#: A pandas frame; pandas is not a dependency.
DataFrame = Any


class FrameLike(Protocol):
    """A table with named columns, such as a pandas frame."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any, /) -> Any: ...


FloatArray = Union["NDArray[numpy.float64]", "NDArray[numpy.float32]"]
NumberArray = Union["NDArray[numpy.floating[Any]]", "NDArray[numpy.integer[Any]]"]
PathLike = Union[str, "os.PathLike[str]"]

TruthLike = Union[
    PathLike,
    "Split",
    "Dataset",
    Sequence[Mapping[str, Any]],
    Mapping[str, Any],
    NumberArray,
    Sequence[NumberArray],
    FrameLike,
]
PredictionsLike = Union[
    PathLike,
    "Predictions",
    Sequence[Mapping[str, Any]],
    Mapping[str, Any],
    NumberArray,
    Sequence[NumberArray],
    FrameLike,
]
DurationsLike = Union[PathLike, Mapping[str, float], NumberArray]
VideoIndexLike = Union[PathLike, Mapping[str, Any]]
RatingsLike = Union[PathLike, Mapping[str, Any], FrameLike]
ProgressLike = Union[bool, Callable[[str, int, int], object], None]
BadRows = Literal["keep", "clamp", "skip", "error"]
IouForm = Literal["true", "hull", "hull-single", "hull-eps", "min-union", "signed"]
