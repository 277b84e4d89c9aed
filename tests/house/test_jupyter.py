"""A notebook in a real kernel: what a session shows, cell by cell."""

import sys

import nbclient
import nbformat
import pytest

PREPARE = """
import numpy as np
import fenchel as fl
rng = np.random.default_rng(0)
X = rng.standard_normal((120, 12))
y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(120)
groups = fl.Groups([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]], names=["a", "b", "c", "d"])
problem = fl.Problem(X, y, loss="squared", penalty=fl.GroupLasso(groups), alpha=0.05)
fl.solve(problem)  # a new machine compiles here, and says so
fl.cross_validate_path(problem, n_alphas=3)
fl.StructuredRegressorCV(fl.Squared(), fl.L1(), n_alphas=3).fit(X, y)
"""
SHOWN = {
    "problem": "120 rows, 12 features", "problem.penalty": "GroupLasso", "groups": "features",
    "fl.solve(problem)": "converged", "fl.solve(problem).history": "relative gap", "fl.Grid((3, 4))": "3 x 4",
    "fl.path(problem, n_alphas=6)": "<svg", "fl.cross_validate_path(problem, n_alphas=6)": "one standard error",
}  # fmt: skip
PROGRESS = {
    "result = fl.solve(problem, progress=True)": "relative gap",
    "path = fl.path(problem, n_alphas=9, verbose=True)": "9 of 9 alphas",
    "cv = fl.cross_validate_path(problem, n_alphas=9, cv=3, verbose=True)": "27 of 27 fits",
    "model = fl.StructuredRegressorCV(fl.Squared(), fl.L1(), n_alphas=9, cv=3, verbose=True).fit(X, y)": "fits",
}


@pytest.fixture(scope="module")
def outputs():
    """The outputs of every cell, by its source, from one run."""
    cells = [nbformat.v4.new_code_cell(source) for source in (PREPARE, *SHOWN, *PROGRESS)]
    spec = {"display_name": "this Python", "language": "python", "name": "python3"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec})
    client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3")
    client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    return {cell.source: cell.outputs for cell in notebook.cells}


@pytest.mark.parametrize("source", SHOWN)
def test_what_is_asked_for_is_shown_as_a_page(outputs, source):
    (output,) = [made for made in outputs[source] if made.output_type == "execute_result"]
    assert SHOWN[source] in output.data["text/html"]
    assert "object at 0x" not in output.data["text/plain"]


@pytest.mark.parametrize("source", PROGRESS)
def test_progress_is_one_output_that_was_redrawn(outputs, source):
    (output,) = outputs[source]  # nothing on stderr, and no second display
    assert output.output_type == "display_data"
    assert PROGRESS[source] in output.data["text/plain"] and "0 s left" not in output.data["text/plain"]
    assert "<progress" in output.data["text/html"]
