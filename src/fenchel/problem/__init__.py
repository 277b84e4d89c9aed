"""The objective, its dual, and the certificate: written once, here."""

from __future__ import annotations

from ..penalties.snapping import tied_features
from .bounds import Bounds, Certificate, NoCertificate
from .fingerprint import Fingerprint
from .problem import Problem

__all__ = ["Bounds", "Certificate", "Fingerprint", "NoCertificate", "Problem", "tied_features"]
