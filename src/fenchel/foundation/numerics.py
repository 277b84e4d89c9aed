"""Numbers that mean the same in every room: what rounding does, where steps end, how much is done at once."""

from __future__ import annotations

import math

UNIT = 2.0**-53
"""The largest relative error of one operation with doubles. A fact."""

TINY = 1e-300
"""Stands for zero where a number is divided by it or has its logarithm taken. Larger: problems in tiny units
(objectives near 1e-300) would be judged as if they were zero; smaller: a quotient overflows."""

LARGEST = 1e140
"""Of a target of squares, or a coefficient in a file: squares of 1e20 rows still have a sum, and so have products of
these sums with others. Larger: such problems end in infinities rather than in a sentence."""

HALF: float = UNIT**0.5
"""Half of the digits, 1e-8: what is left of a number that is a difference of squares, or a root of one, and what is
lost where a number has only half of its digits, as a share that a file tells. From UNIT."""

ROUNDING = 1e-12
"""Of what a long computation is made of (an objective, a radius, the largest curvature): what rounding may leave of it
where nothing should be left. A gap below it may be the last one, a point this far outside counts as feasible to a user
who asks (a certificate takes no such allowance: it scales), curvatures this close are equal, and damping begins there.
Larger: slow runs count as stalled, and points outside as feasible; smaller: rounding is waited for, and a prox's own
answer refused."""

NOTHING = 1e-10
"""Of the largest of its kind (the objective at zero, an eigenvalue, the size of a sum): what counts as zero where
thousands of roundings may have added up, and what is added to a diagonal to make it definite. Larger: small things that
count are lost, and answers are sloppy where the optimum is tiny; smaller: rounding is taken for something."""

BALANCED = 1e-14
"""Of the sizes of the terms of a sum over all rows: what counts as a sum of zero, or as no change of an objective.
Larger: dual points are less feasible than rounding allows, and steps that gain are taken for rounding; smaller:
rounding of the sum itself (a few UNIT) is taken for something."""

DIGITS = 1e-13
"""Of an objective, a norm or a column's mean square: below it rounding is all that steps change, and a variance is that
of a constant. Larger: sums that are to be zero are not; smaller: steps in vain."""

DIFFERENCE: float = UNIT ** (1 / 3)
"""Of the size of a point, for a derivative by central differences that nobody told: there rounding, UNIT / h, and
curvature, h^2, spoil about as much. From UNIT."""

ARMIJO = 1e-4
"""Of the fall that the slope promises: what a step must bring. Larger: good steps are shortened; zero: steps that
bring nothing are taken for ever."""

HALVINGS = math.ceil(-math.log2(ROUNDING))
"""Of a step that brings too little: after so many it is below the digits that a sum over rows has. From ROUNDING."""

NEWTON_STEPS = 100
"""Of an iteration over few directions that doubles its digits, or multiplies its weight, from step to step. More are
wanted only where the optimum lies at infinity, and would not reach it."""

LITTLE = 1e-3
"""Share of a whole (of a gap, a move, an objective) that makes no difference to what is done next. Larger: what was
left out has to be mended later; smaller: work that nobody sees."""

FULL = 0.1
"""Share of the entries of a sparse array that are not zero, from which it is filled in: dense products, and the room of
a number without its place, cost about a tenth of an entry. Larger: sparse products where dense ones are faster;
smaller: zeros take the memory."""

POWER = 20
"""Rounds of the power method, which tell the largest singular value to some per cent, from below. Fewer: steps that are
too long; more: products that tell nothing new."""

DENSE = 2000
"""Rows of a square matrix that dense linear algebra decomposes: 32 MB, and seconds. Larger: minutes."""

AT_ONCE = 1 << 16
"""Entries that one call of numpy looks at, that are kept for the next object of their size, and of data on which an
answer is polished unasked: half a megabyte, which stays in the cache and takes milliseconds. Larger: slower by reading
memory; smaller: slower by calls."""

BESIDE = 1 << 22
"""Numbers that are held beside the data for a while, whatever its size: 32 MiB. Larger: memory that nobody asked for;
smaller: what could be kept is made again, or in more pieces."""

SPACE = 1e9
"""Bytes that may be taken for what is not the data (all entries of a map, blocks of Gram matrices, samples of rows that
are elsewhere), where nobody says how many. Larger: machines with little memory swap; smaller: problems are refused."""

CACHE = 1 << 22
"""Bytes that a processor's own cache holds: what has no more is read again for next to nothing. Larger: reading that
takes time counts as free; smaller: copies and requests ahead that save nothing."""

LONGEST = 1e9
"""Nanoseconds of one call that nobody can interrupt, and entries that are read or multiplied in one, at a nanosecond or
less for each. Larger: Ctrl-C and time limits are heard late; smaller: calls are many."""

COPY = 1 << 26
"""Bytes that a copy of the data may take for the sake of speed or digits alone. Larger: memory doubles without being
asked for."""
