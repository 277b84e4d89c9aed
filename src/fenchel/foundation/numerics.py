"""Numbers that mean the same in every room: what rounding does, where steps end, how much is done at once."""

from __future__ import annotations

UNIT = 2.0**-53
"""The largest relative error of one operation with doubles. A fact."""

TINY = 1e-300
"""Stands for zero where a number is divided by it or has its logarithm taken. Larger: problems in tiny units
(objectives near 1e-300) would be judged as if they were zero; smaller: a quotient overflows."""

LARGEST = 1e140
"""Of a target of squares, or a coefficient in a file: squares of 1e20 rows still have a sum, and so have products of
these sums with others. Larger: such problems end in infinities rather than in a sentence."""

SLACK = 1e-12
"""Of the radius of a dual constraint, by which rounding may pass it in a function that a user calls (a certificate
takes no such allowance: it scales). Larger: points outside count as feasible; smaller: a prox's own answer is
refused."""

BALANCED = 1e-14
"""Of the sizes of the terms of a sum over all rows: what counts as a sum of zero. Larger: dual points are less
feasible than rounding allows; smaller: rounding of the sum itself (a few UNIT) is taken for something."""

DIGITS = 1e-13
"""Of an objective or a norm: below it rounding is all that steps change. Larger: sums that are to be zero are not;
smaller: steps in vain."""

DIFFERENCE = 2.0**-18
"""Of the size of a point, for a derivative by central differences that nobody told: near the third root of UNIT,
where rounding and curvature spoil about as much. Larger or smaller: fewer digits."""

ARMIJO = 1e-4
"""Of the fall that the slope promises: what a step must bring. Larger: good steps are shortened; zero: steps that
bring nothing are taken for ever."""

HALVINGS = 40
"""Of a step that brings too little: 2^-40 of it is below the digits that a sum over rows has. More: steps that change
nothing."""

NEWTON_STEPS = 100
"""Of a damped Newton iteration over few directions. More are wanted only where the optimum lies at infinity, and
would not reach it."""

LEAST_DAMPING = 1e-12
"""Of the largest curvature, in such an iteration. Larger: slower at the end; zero: no way back from a singular
matrix."""

DENSE = 2000
"""Rows of a square matrix that dense linear algebra decomposes: 32 MB, and seconds. Larger: minutes."""

AT_ONCE = 1 << 16
"""Entries that one call of numpy looks at: temporaries of half a megabyte, which stay in the cache. Larger: slower by
reading memory; smaller: slower by calls."""

KEPT = 1 << 16
"""Numbers in an object that is kept for the next one of its size: half a megabyte. Larger: memory that nobody sees
go."""

BESIDE = 1 << 22
"""Numbers that are held beside the data for a while, whatever its size: 32 MiB. Larger: memory that nobody asked for;
smaller: what could be kept is made again, or in more pieces."""

COPY = 1 << 26
"""Bytes that a copy of the data may take for the sake of speed or digits alone. Larger: memory doubles without being
asked for."""
