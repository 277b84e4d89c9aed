"""How well models are solved and what rounding hides: the numbers that all engines with models share."""

from __future__ import annotations

ACCURACY, FINE, FINEST = 1e-2, 1e-3, 1e-5  # of a model's answer: far from the goal, near it, and if nothing is gained
NEAR = 1e-3  # relative gap from which models are solved better; larger: rounds of ADMM that the next model loses
HOPE = 1e4  # times the gap that is allowed: from there a step may be the last one; larger: proofs in vain
IDLE = (
    14  # rounds in a row that foresee no smaller gap (by a third), after which an engine gives up; larger: it is late
)
ROUNDS, ROUNDS_CHEAP = 80, 400  # for one alpha, at the most; more mean that something else should be tried
IDLE_CHEAP = 40  # the same where rounds are cheap: on a sample, or turns of ADMM; larger: it is late
CHANGED = 0.02  # of the curvatures of the rows: a smaller change does not slow a repair down
