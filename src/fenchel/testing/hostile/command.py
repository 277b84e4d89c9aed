"""Many hostile problems, a table of what became of them, and whether that is good enough."""

from __future__ import annotations

import argparse

import numpy as np

from .judge import Outcome, run, table
from .problems import PENALTIES
from .targets import DRAWN


def main(argv: list[str] | None = None) -> int:
    """Run as the arguments say; the exit status is 1 where something broke, warned or had a false bound, or too many
    did not converge."""
    arguments = _parser().parse_args(argv)
    first = arguments.seed * 1_000_000
    seeds = arguments.only or range(first, first + arguments.cases)
    outcomes = []
    for seed in seeds:
        share = np.random.default_rng([23, seed]).random()
        one = run(
            seed, tol=arguments.tol, seconds=arguments.seconds, exact=not arguments.quick,
            conic=share < arguments.conic, loss=arguments.loss, penalty=arguments.penalty,
            well_scaled=arguments.well_scaled,
        )  # fmt: skip
        outcomes.append(one)
        if one.wrong or one.verdict not in ("converged", "no answer", "rounding"):
            print(_line(one), flush=True)
    print("\n".join(table(outcomes)))
    return int(not _good(outcomes, 0.0 if arguments.well_scaled else arguments.unconverged))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fenchel.testing.hostile",
        description="Solve random problems that are meant to go wrong, and judge every bound with sixty digits.",
    )
    parser.add_argument("--cases", type=int, default=500, help="how many problems")
    parser.add_argument("--seed", type=int, default=0, help="which ones: another seed, other problems")
    parser.add_argument("--only", type=int, nargs="+", help="the problems of these numbers alone, as they are printed")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float, default=10.0, help="of the processor, for every solve")
    parser.add_argument("--conic", type=float, default=0.0, help="share of the problems that a conic solver checks too")
    parser.add_argument("--quick", action="store_true", help="without the judge of sixty digits")
    parser.add_argument("--well-scaled", action="store_true", help="data as people have them, and no alpha near zero")
    parser.add_argument(
        "--unconverged",
        type=float,
        default=0.01,
        help="share of the problems with an answer in reach that may miss it (.01); none of the well-scaled",
    )
    parser.add_argument("--loss", choices=DRAWN)
    parser.add_argument("--penalty", choices=list(PENALTIES))
    return parser


def _line(one: Outcome) -> str:
    say = f"{one.status}, gap {one.gap:.1e}, {one.passes} passes, {one.seconds:.1f} s {one.reason}"
    return f"{one.drawn or one.seed}: {say} {one.warned} {one.false} {one.broke}".rstrip()


def _good(outcomes: list[Outcome], most: float) -> bool:
    """Print the verdict on all of them, and say whether they passed."""
    counted = [one for one in outcomes if one.verdict not in ("no answer", "rounding")]
    bad = sum(one.verdict == "unconverged" for one in counted)
    wrong = sum(one.wrong for one in outcomes)
    share = bad / max(len(counted), 1)
    print(
        f"{bad} of {len(counted)} problems with an answer in reach did not converge ({share:.1%}); {wrong} broke, "
        f"warned or had a false bound; {sum(one.exact for one in outcomes)} objectives with sixty digits, "
        f"{sum(one.conic for one in outcomes)} comparisons with a conic solver"
    )
    return not wrong and share <= most
