"""A grid of features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._validate import AnyArray, Array, _count
from ..foundation.html import Shown
from .names import _fits


class Grid(Shown):
    """Features on a grid of any number of dimensions, C-ordered, perhaps only where a mask is true.

    Parameters
    ----------
    shape : int or tuple of int, or a boolean array
        An array stands for its shape, and for itself as the mask.
    mask : boolean array of that shape, optional
        The features are its true cells, in C order: ``images[:, mask]``.

    Attributes
    ----------
    p : int
    edges : array (m, 2)
        Neighbouring features; all edges from one cell stand together.
    features : list of str
        Cells as "row,column".

    Examples
    --------
    >>> import fenchel as fl
    >>> fl.Grid((28, 28))
    Grid(28 x 28)
    """

    def __init__(self, shape: int | tuple[int, ...] | AnyArray, mask: AnyArray | None = None) -> None:
        given = np.asarray(shape)
        if given.ndim > 1 and given.dtype != bool:
            raise ValueError(
                f"shape is an array of {given.dtype} of shape {given.shape}; it must be whole numbers such as "
                f"{given.shape}, or a boolean mask such as array > 0"
            )
        if given.dtype == bool and given.ndim > 0:
            if mask is not None:
                raise ValueError("mask is given twice: the first argument is one already")
            mask, shape = given, given.shape
        self.shape = tuple(_count("shape", s) for s in np.atleast_1d(shape).tolist())
        self.mask = None
        number = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        if mask is not None:
            mask = np.asarray(mask)
            if mask.shape != self.shape or mask.dtype != bool:
                raise ValueError(f"mask is {mask.dtype} of shape {mask.shape}; it must be boolean, {self.shape}")
            if not mask.any():
                raise ValueError("mask is false everywhere; there are no features")
            self.mask = mask.copy()
            number = np.where(mask, np.cumsum(mask.ravel()).reshape(self.shape) - 1, -1)
        self.p = int(np.count_nonzero(number >= 0))
        pairs = []
        for axis, length in enumerate(self.shape):
            here = np.take(number, range(length - 1), axis=axis).ravel()
            there = np.take(number, range(1, length), axis=axis).ravel()
            pairs.append(np.column_stack([here, there])[(here >= 0) & (there >= 0)])
        edges = np.concatenate(pairs)
        self.edges = edges[np.argsort(edges[:, 0], kind="stable")]

    @property
    def features(self) -> list[str]:
        cells = np.ndindex(self.shape) if self.mask is None else map(tuple, np.argwhere(self.mask).tolist())
        return [",".join(map(str, cell)) for cell in cells]

    def image(self, coef: npt.ArrayLike, fill: float = np.nan) -> Array:
        """The coefficients on their grid, `fill` outside the mask."""
        coef = np.asarray(coef)
        if coef.shape != (self.p,):
            raise ValueError(f"coef has shape {coef.shape}; {self!r} has {self.p} features")
        if self.mask is None:
            return coef.reshape(self.shape)
        out = np.full(self.shape, fill)
        out[self.mask] = coef
        return out

    def to_plain(self) -> dict[str, Any]:
        """What a file needs to make it again."""
        return {"shape": list(self.shape), "mask": None if self.mask is None else self.mask.tolist()}

    def checked(self, p: int | None) -> Grid:
        """Self, for p features."""
        _fits(self, p)
        return self

    def _html_title(self) -> str:
        return repr(self)

    def _html_rows(self) -> list[tuple[str, Any]]:
        mask = "none" if self.mask is None else f"{self.p:,} of {int(np.prod(self.shape)):,} cells"
        return [("shape", " x ".join(map(str, self.shape))), ("features", f"{self.p:,}"), ("mask", mask)]

    def __repr__(self) -> str:
        masked = "" if self.mask is None else f", {self.p} cells in the mask"
        return f"Grid({' x '.join(map(str, self.shape))}{masked})"
