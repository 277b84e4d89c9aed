"""How well models are solved and what rounding hides: the numbers that all engines with models share."""

from __future__ import annotations

# of a model's answer: far from the goal, nearer than FINE to it, and if nothing is gained
FINE, FINEST = 1e-3, 1e-5
HOPE = 1e4  # times the gap that is allowed: from there a step may be the last one; larger: proofs in vain
IDLE = (
    14  # rounds in a row that foresee no smaller gap (by a third), after which an engine gives up; larger: it is late
)
ROUNDS_CHEAP = 400  # of ADMM, on a sample, or of descent, at the most; more mean that something else should be tried
IDLE_CHEAP = 40  # the same where rounds are cheap: on a sample, or turns of ADMM; larger: it is late
FIRM = 2.0  # rows for each coefficient that hold it: with fewer, models do not last and digits are lost
BEYOND = 2.0  # times its budget: what an attempt may take in the end; larger: more of them in vain
PROJECTIONS = 40  # that bring a dual point into balance and inside; they end where it is, and more are in vain
CHANGED = 0.02  # of the curvatures of the rows: a smaller change does not slow a repair down
