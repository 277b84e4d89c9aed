"""Quadratic models of the loss on the coefficients of a round."""
