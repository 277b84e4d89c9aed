"""Solvers of a round's quadratic model."""
