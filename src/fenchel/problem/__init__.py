"""The objective, its dual, and the certificate: written once, here."""

from __future__ import annotations

from ..penalties.snapping import tied_features
from .bounds import Bounds, Certificate, NoCertificate
from .fingerprint import Fingerprint
from .points import Point
from .problem import Problem

__all__ = ["Bounds", "Certificate", "Fingerprint", "NoCertificate", "Point", "Problem", "tied_features"]
