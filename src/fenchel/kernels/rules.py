"""The rules that rounds of working sets follow, whether they are compiled or not.

Every number that more than one file of rounds, models and descent goes by has its place here, with its unit, what it is
for, and what becomes of a larger one.
"""

from __future__ import annotations

# -- what is wanted -----------------------------------------------------------------------------------

INNER = 0.2  # of the wanted gap: how well the last working set is fit; larger: more looks at all of the data
LOOSE = 0.1  # of the gap over all features: how well a set is fit that will change; smaller: in vain

# -- which features -----------------------------------------------------------------------------------

MEMORY = 1 << 28  # bytes of a set with its Gram matrix, unless the data are larger; a larger set is left to others
NEAR = 1.3  # ratio of neighbouring alphas up to which the strong rule names the next support; larger: too many
STAGE = 3.0  # ratio of the alphas on the way to a first one, if features are more than rows; larger: longer rounds
STAGE_TOL = 1e-2  # relative gap that is enough on that way; larger: sets that the next alpha has to mend
HARD = 3.0  # score at the start from which a unit likely stays; larger: smaller supports are expected
ROUNDS = 60  # of working sets, or models, for one alpha; an answer takes one to ten, more mean: try another way
PATIENCE = 8  # rounds, or models, that do not halve the gap; by then rounding stands in the way, and more are in vain
TIGHTER = 0.03  # of the accuracy of models, after a round that did not halve the gap; smaller: more passes of descent

# -- models, and how they are solved ------------------------------------------------------------------

MODELS = 40  # of one set at the most; an answer takes one to ten
SLOW = 0.3  # of the last gap: after a model or round that leaves more, what it was made of is made anew; larger: seldom
FLAT = 0.25  # of the smoothness of losses with flat parts: the curvature of every row at first; smaller: steps too long
CAREFUL = 0.03  # the same after a step was cut short; larger: shorter steps
LEAST = 1e-3  # of the mean curvature of a row: what every row of a model counts for; larger: models that are too stiff
JITTER = 1e-11  # of the largest diagonal entry of a Gram matrix, so that a factor exists; larger: slower Newton steps
SWEEPS = 100  # turns of descent and Newton's method for one model; more are only needed where the model is singular
TURNS = 12  # passes of descent that a model usually takes; larger: Gram matrices seem cheaper beside it
STUCK = 6  # turns in a row that gain nothing, by which rounding is all that is left; more are in vain
DEPTH = 5  # passes that an extrapolation looks back on; more cost memory and gain little
FACTOR = 0.4  # of an entry that descent reads: a multiply-add of a factor (prices/calibrated.py: potrf, descent)

# -- steps --------------------------------------------------------------------------------------------

ARMIJO = 0.01  # of the decrease that the slopes promise: what a step must bring; larger: shorter steps
ROUNDING = 1e-14  # of an objective: smaller changes say nothing; larger: steps that gain are taken for rounding
TRIES = 60  # of one step, each half as long again as the next or more; by then a thousand millionth of the first
JUMP = 20.0  # times the curvature of a step that was too long, at the most; larger: steps that are much too short
INEXACT = 0.02  # of the square of the last move: gap that a prox may leave; larger: steps that mislead
HALVINGS = 30  # of one step; shorter ones no longer change the objective
