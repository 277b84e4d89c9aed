"""Where the tests find the real data: in FENCHEL_DATA, else in a folder beside the checkout, if it is there."""

import os
from pathlib import Path

beside = Path(__file__).resolve().parents[2] / "shared" / "data"
if beside.is_dir():
    os.environ.setdefault("FENCHEL_DATA", str(beside))  # processes that a test starts inherit it
