"""The same problems written for an independent conic solver (CVXPY with Clarabel)."""

from __future__ import annotations

from fenchel.testing.hostile.conic import loss_expression, penalty_expression, reference

__all__ = ["loss_expression", "penalty_expression", "reference"]
