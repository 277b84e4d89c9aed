"""The command `fenchel warmup`: kernels compiled before somebody waits for them, in an image or on a node."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from .common import hint, make_console

if TYPE_CHECKING:
    from .._validate import Array

try:
    import typer
except ImportError:  # cli.main() says what to install
    typer = None  # type: ignore[assignment]  # main() says what to install


def warmup(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to prepare: lasso, sparse, groups, overlaps, lines, images, classes; all if none is given."
        ),
    ] = None,
) -> None:
    """Compile the kernels that fits of these kinds run, and keep them where this machine's later fits find them.

    For images of containers and for clusters: set NUMBA_CACHE_DIR to a folder that goes with the image or that all
    nodes see. What is compiled already is only loaded.
    """
    known = _fits()
    for kind in kinds or ():
        if kind not in known:
            raise ValueError(f"{kind!r} is nothing to warm up; {hint(kind, list(known))}")
    console = make_console()
    for kind in kinds or known:
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these fits are for their kernels alone
            for fit in known[kind]:
                fit()
        console.print(f"{kind}: {time.perf_counter() - began:.1f} s", highlight=False)


def _fits() -> dict[str, list[Callable[[], object]]]:
    """Small fits that run what fits of a kind run: single ones, paths, both kinds of targets."""
    import numpy as np
    import scipy.sparse as sp

    from .. import (
        FusedLasso,
        GraphFused,
        GroupLasso,
        Lasso,
        LatentGroupLasso,
        MultiTaskLasso,
        Problem,
        SparseGroupLasso,
        TotalVariation,
        TrendFilter,
        path,
        solve,
    )

    rng = np.random.default_rng(0)
    n, p = 300, 64  # more than the fits of tiny problems, which have kernels of their own, take
    X = rng.standard_normal((n, p))
    score = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n)
    label = np.sign(score)
    three = np.eye(3)[np.digitize(score, [-0.5, 0.5])]
    groups = [list(range(first, first + 4)) for first in range(0, p, 4)]
    overlaps = [list(range(first, min(first + 6, p))) for first in range(0, p, 4)]

    both = {"squared": score, "logistic": label}

    def fits(*penalties: Any, data: Any = X, targets: dict[str, Array] = both) -> list[Callable[[], object]]:
        def run(penalty: Any) -> None:
            for loss, target in targets.items():
                problem = Problem(data, target, loss=loss, penalty=penalty, fit_intercept=True)
                solve(problem.with_alpha(0.1 * problem.alpha_max()))
                path(problem, n_alphas=4)

        return [functools.partial(run, penalty) for penalty in penalties]

    tiny = {loss: target[:40] for loss, target in both.items()}
    sparse = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    chain = [(j, j + 1) for j in range(p - 1)]
    return {
        "lasso": fits(Lasso()) + fits(Lasso(), data=X[:40, :8].copy(), targets=tiny),
        "sparse": fits(Lasso(), data=sparse),
        "groups": fits(GroupLasso(groups), SparseGroupLasso(groups)),
        "overlaps": fits(GroupLasso(overlaps), LatentGroupLasso(overlaps)),
        "lines": fits(FusedLasso(), TrendFilter(), GraphFused(chain)),
        "images": fits(TotalVariation((8, 8))),
        "classes": fits(MultiTaskLasso(n_outputs=3), targets={"multinomial": three}),
    }
