"""The objective, its dual, and the certificate: written once, here."""

from __future__ import annotations

from .bounds import Bounds, Certificate, NoCertificate
from .fingerprint import Fingerprint
from .problem import Problem
from .snapping import tied_features

__all__ = ["Bounds", "Certificate", "Fingerprint", "NoCertificate", "Problem", "tied_features"]
