"""The rules that rounds of working sets follow, whether they are compiled or not.

Every number that more than one file of rounds, models and descent goes by has its place here, with its unit, what it is
for, and what becomes of a larger one.
"""

from __future__ import annotations

# -- what is wanted -----------------------------------------------------------------------------------

INNER = 0.2  # of the wanted gap: how well the last working set is fit; larger: more looks at all of the data
LOOSE = 0.1  # of what there was (a gap, a first step or miss): how well is solved what will change; smaller: in vain

# -- which features -----------------------------------------------------------------------------------

LARGEST = 6000  # coefficients of a model: with more, factors take minutes
MEMORY = 1 << 28  # bytes of a set with its Gram matrix, unless the data are larger; a larger set is left to others
NEAR = 1.3  # ratio of neighbouring alphas up to which the strong rule names the next support; larger: too many
STAGE = 3.0  # ratio of the alphas on the way to a first one, if features are more than rows; larger: longer rounds
STAGE_TOL = 1e-2  # relative gap, or accuracy of a model, that is enough on the way; larger: more is left to mend
HARD = 3.0  # score at the start from which a unit likely stays; larger: smaller supports are expected
ROUNDS = 60  # of working sets, or models, for one alpha or set; an answer takes one to ten, more mean: try another way
PATIENCE = 8  # rounds, models or turns in a row that do not halve the gap, or gain nothing: rounding; more are in vain
TIGHTER = 0.03  # of the accuracy of models, after a round that did not halve the gap; smaller: more passes of descent

# -- models, and how they are solved ------------------------------------------------------------------

SLOW = 0.3  # of the last gap: after a model or round that leaves more, what it was made of is made anew; larger: seldom
FLAT = 0.25  # of the smoothness of losses with flat parts: the curvature of every row at first; smaller: steps too long
CAREFUL = 0.03  # the same after a step was cut short; larger: shorter steps
LEAST = 1e-3  # of the mean curvature of a row: what every row of a model counts for; larger: models that are too stiff
TURNS = 12  # passes of descent that a model usually takes; larger: Gram matrices seem cheaper beside it
MANY = 60  # coordinates from which passes are extrapolated; larger: slow descent, smaller: Newton's method comes late
DEPTH = 5  # passes that an extrapolation looks back on; more cost memory and gain little
FACTOR = 0.4  # of an entry that descent reads: a multiply-add of a factor (prices/calibrated.py: potrf, descent)

# -- looks --------------------------------------------------------------------------------------------

LONGER = 1.6  # times as many steps as before, when the next look comes, at the most; larger: steps in vain
LOOK = 10  # cheap steps between two looks that cost more (at a gap, signs, a certificate); larger: steps in vain

# -- steps --------------------------------------------------------------------------------------------

JUMP = 20.0  # times the curvature of a step that was too long, at the most; larger: steps that are much too short
INEXACT = 0.02  # of the square of the last move: gap that a prox may leave; larger: steps that mislead
