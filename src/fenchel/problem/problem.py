"""A problem to solve: data, loss, penalty and alpha, and its siblings with another alpha or other weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from .._validate import Array, MatrixLike
from ..data import Pool, Rows, as_offset, as_weights
from ..foundation.html import Shown, short
from ..foundation.lazy import lazy
from ..foundation.numerics import LARGEST
from ..losses import Squared
from ..penalties import Block, Penalty, scale_blocks, unit_blocks
from ..penalties.block_sum import _once_per_map
from ..penalties.snapping import Snapping
from .certificate import Certifying
from .fingerprint import Fingerprint
from .objective import _as_alpha, _as_penalty

if TYPE_CHECKING:
    from .alpha_max import ZeroAnswer

# what makes a problem the one it is
_FIXED = frozenset(("loss", "penalty", "alpha", "data", "target", "weight", "offset", "fit_intercept", "layout", "n",
                    "p", "vectors", "single", "size", "pool", "terms"))  # fmt: skip
# what is known of a map together with the rows of the data, their targets or their intercept
_OF_ROWS = frozenset(("_row_sums", "_free", "rows of tasks", "target size"))
_PLAIN = 1 / LARGEST  # products of two numbers that are not smaller are never too small for a number


class Problem(Shown, Certifying, Snapping):
    """min over w of the weighted mean loss of X w plus alpha * penalty(w).

    Parameters
    ----------
    X : array, CSR or CSC matrix, memmap or data frame, shape (n, p)
        Dense data is float32 or float64 in C or Fortran order and is not copied. What visits single rows (epochs do,
        working sets do not) makes a copy by rows of data that is stored by columns.
    y : array of n targets, or (n, m) for m outputs
    loss : Loss or its name
    penalty : Penalty, optional
        With m outputs or tasks it acts on the m * p coefficients, output after output.
    alpha : float
        Multiplies the penalty.
    sample_weight : vector of n weights, optional
    fit_intercept : bool
        An unpenalised intercept for each output.
    task : vector of n integers, optional
        Rows of task k use coefficients of their own; a penalty may couple them.
    offset : vector of n numbers, or (n, m) for m outputs, optional
        Added to the scores: what is known of a row beforehand, such as the logarithm of its exposure. A loss of the
        residual has it in its targets: there `target` is y - offset, and the problem keeps no offset.

    Notes
    -----
    A problem does not change. Siblings with another alpha, other weights or another penalty (`with_alpha`,
    `with_weights`, `with_penalty`) share what does not depend on that: `shared` holds what follows from data and map
    alone, never from alpha or weights; `remembered` what belongs to one problem.
    """

    pooled = False  # whether the rows live in a pool, see ``problem/pooled.py``
    zero_answer: ZeroAnswer | None = None  # the largest useful alpha with its answer, once it was asked for

    def __new__(cls, X: Any = None, *given: Any, **named: Any) -> Problem:
        """Rows in a pool make a problem of their own kind."""
        kind: type[Problem] = cls
        if cls is Problem and isinstance(X, Pool):
            from .pooled import PooledProblem as kind
        return object.__new__(kind)

    def __repr__(self) -> str:
        kind = ", sparse" if self.data.sparse else ""
        outputs = f", {self.vectors:,} outputs" if self.vectors > 1 else ""
        return (
            f"Problem({self.n:,} rows, {self.p:,} features{kind}{outputs}, {self.loss!r}, "
            f"{short(self.penalty)}, alpha {self.alpha:.6g})"
        )

    def _html_rows(self) -> list[tuple[str, Any]]:
        kind = ", sparse" if self.data.sparse else ""
        rows: list[tuple[str, Any]] = [
            ("data", f"{self.n:,} rows, {self.p:,} features{kind}"),
            ("coefficients", f"{self.vectors:,} x {self.p:,}" if self.vectors > 1 else f"{self.p:,}"),
            ("loss", repr(self.loss)), ("penalty", "none" if self.penalty is None else self.penalty),
            ("alpha", f"{self.alpha:.6g}"), ("intercept", "free" if self.fit_intercept else "none"),
        ]  # fmt: skip
        if self.weight.size:
            rows.append(("weights of rows", f"{self.weight.min():.4g} to {self.weight.max():.4g}"))
        return rows

    def watch(self, tell: Callable[..., None] | None) -> None:
        """Have somebody told how far a pass over rows in a pool has come."""

    def unpenalised_answer(self) -> Any:
        """The best w that the penalty does not see, where the rows live in a pool."""
        raise NotImplementedError

    def with_alpha(self, alpha: float) -> Problem:
        """The same data with another alpha; nothing is checked, compiled or copied again."""
        alpha = _as_alpha(alpha)
        if min(alpha, self.alpha) >= _PLAIN and self._stays_whole:
            other = self._sibling("blocks", alpha=alpha)  # they are made when somebody asks
        else:
            other = self._with_blocks(scale_blocks(self._unit_blocks, alpha), alpha=alpha)
        other.zero_answer = self.zero_answer
        if self.__dict__.get("_penalty_at_zero") == 0.0 < alpha:
            other._penalty_at_zero = 0.0
        return other

    @_once_per_map
    def _stays_whole(self) -> bool:
        """Whether every multiple of the penalty, down to a tiny one, has the same blocks."""
        return all(
            block.matrix is own.matrix and block.smallest() >= _PLAIN
            for block, own in zip(self._unit_blocks, self.blocks, strict=False)
        ) and len(self.blocks) == len(self._unit_blocks)

    def with_weights(self, sample_weight: npt.ArrayLike | None) -> Problem:
        """The same data and penalty with other weights of the rows; what does not depend on these is shared."""
        weight = as_weights(sample_weight, self.n)
        return self._sibling("_conjugate_at_zero", "_loss_at_zero", weight=weight)

    def with_data(self, X: MatrixLike) -> Problem:
        """The same targets, loss, weights and penalty on other columns of the same shape, such as scaled ones."""
        data = Rows(X)
        if (data.n, data.p) != (self.n, self.p):
            raise ValueError(f"X has shape {(data.n, data.p)}; the problem's data has {(self.n, self.p)}")
        other = self._sibling(data=data)
        other._set_blocks(self.blocks)
        return other

    def with_penalty(self, penalty: Penalty | None, alpha: float | None = None) -> Problem:
        """The same data, loss and weights with another penalty, and another alpha if one is given."""
        penalty, alpha = _as_penalty(penalty), self.alpha if alpha is None else _as_alpha(alpha)
        other = self._sibling(penalty=penalty, alpha=alpha)
        other._unit_blocks = unit_blocks(penalty, self.vectors * self.p)
        other._set_blocks(scale_blocks(other._unit_blocks, alpha))
        return other

    def squares(self, target: Array, sample_weight: npt.ArrayLike, X: MatrixLike | None = None) -> Problem:
        """Weighted squares with the same penalty: a quadratic model of another loss. Of the same data with an
        intercept, or of other rows X without one."""
        other = self._sibling(
            "_conjugate_at_zero", "_loss_at_zero", loss=Squared(), target=target, offset=as_offset(None, self.n, 1),
            weight=as_weights(sample_weight, self.n), data=self.data if X is None else Rows(X), fit_intercept=X is None,
        )  # fmt: skip
        other._of_map = {name: known for name, known in self._of_map.items() if name not in _OF_ROWS}
        return other

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and name in self.__dict__:
            raise AttributeError(
                f"a Problem does not change, so that what is known of it stays true; for another {name} make one by "
                "with_alpha, with_weights or with_penalty"
            )
        super().__setattr__(name, value)

    def _sibling(self, *changed: str, **given: Any) -> Problem:
        """A copy that shares everything but what is known of this very problem, and what is named as `changed`; what
        is `given` takes the place of its own."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for known in (
            "_dual_at_zero",
            "_objective_at_zero",
            "_penalty_at_zero",
            "fingerprint",
            "zero_answer",
            "_remembered",
            *changed,
        ):
            other.__dict__.pop(known, None)
        other.__dict__.update(given)
        return other

    def _with_blocks(self, blocks: list[Block], **given: Any) -> Problem:
        """The same data with other blocks; the map and what follows from it are shared where they stay the same."""
        other = self._sibling(**given)
        if len(blocks) == len(self.blocks) and all(
            new.matrix is old.matrix for new, old in zip(blocks, self.blocks, strict=True)
        ):
            other.blocks = blocks
        else:
            other._set_blocks(blocks)
        return other

    @lazy
    def fingerprint(self) -> Fingerprint:
        """What tells whether a saved run was one of this very problem."""
        loss, data = self.loss, self.data
        dtype = data.dtype.type.__name__
        head: tuple[Any, ...] = (
            type(loss).__name__,
            data.n,
            data.p,
            dtype,
            data.sparse,
            self.layout[0],
            self.fit_intercept,
        )
        if self.offset.size:  # runs of problems without one keep the digest that they were saved with
            head = (*head, "offset")
        # the targets may be the caller's own array, which may change
        arrays = (loss.params, data.mean_squares, self.target.copy(), self.weight, self.layout[2], self.map.data,
                  self.map.indices, self.map.indptr, self.offset)  # fmt: skip
        return Fingerprint(head, arrays, self.blocks)

    def alpha_max(self) -> float:
        """An alpha from which on the penalised part of the answer is zero: B'w = 0.

        The smallest such alpha where the loss is smooth and B is injective (no feature in two places; chains, trees);
        otherwise an upper bound, usually within a per cent of it. Infinite where no alpha will do.
        """
        from .alpha_max import zero_answer

        if self.zero_answer is None:
            self.zero_answer = zero_answer(self)
        return self.zero_answer.alpha
