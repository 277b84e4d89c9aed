"""The comparison with saga runs, on data so small that it proves nothing but that."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_it_runs(capsys):
    script = runpy.run_path(str(Path(__file__).resolve().parents[2] / "benchmarks" / "softmax.py"))
    assert script["main"](["--rows", "400", "--features", "10", "--classes", "4", "--alpha", "0.01"]) == 0
    assert "ratio" in capsys.readouterr().out
