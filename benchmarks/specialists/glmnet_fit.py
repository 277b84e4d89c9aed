"""R's glmnet, in an R process of its own that has its own clock; cv.glmnet fits the path on all rows too."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from specialist import Specialist as Base
from specialist import answers, columns_first

SCRIPT = Path(__file__).with_name("glmnet_fit.R")
FAMILIES = {"squared": "gaussian", "logistic": "binomial", "poisson": "poisson"}


class Specialist(Base):
    name = "glmnet"
    package = "glmnet"
    stops = (1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-14, 1e-16)
    default = 1e-7
    tasks = ("fit", "path", "cv")
    steps = True

    def __init__(self):
        if shutil.which("Rscript") is None:
            raise RuntimeError("there is no Rscript on the path: install r-cran-glmnet (Debian) by hand")
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(["Rscript", "--vanilla", str(SCRIPT), self.folder.name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
        self._version = self._answer()

    def version(self):
        return self._version

    def _answer(self):
        line = self.process.stdout.readline().strip()
        if not line or line.startswith("error"):
            raise RuntimeError(line.removeprefix("error ") or "R ended: is the package glmnet installed?")
        return line

    def _ask(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return self._answer()

    def skip(self, problem, task):
        if problem.loss not in FAMILIES:
            return f"it has no {problem.loss} loss"
        return "it has no groups" if problem.grouped else None

    def set_problem(self, problem, alphas, folds):
        self.problem, self.top = problem, problem.alpha_max()
        y, self.unit = problem.y, 1.0
        if problem.loss == "squared":
            # glmnet divides y by its deviation, and lambda with it, but not the share of the ridge; with a deviation
            # of 1 its objective is the one that it states
            centre = y.mean() if problem.intercept else 0.0
            self.unit = float(np.sqrt(np.mean((y - centre) ** 2))) or 1.0
            y = y / self.unit
        elif problem.loss == "logistic":
            y = (y + 1) / 2
        weight = float(problem.l1.mean()) / self.unit  # its weights sum to p
        self.scale = weight + problem.ridge
        X = columns_first(problem)
        parts = {"y": y, "factors": problem.l1}
        parts |= {"x": X.data, "i": X.indices, "p": X.indptr} if problem.sparse else {"x": X.ravel(order="F")}
        fold = np.zeros(problem.n)
        for k, (_, rows) in enumerate(folds):
            fold[rows] = k + 1
        parts["fold"] = fold
        for name, values in parts.items():
            values.astype("i4" if name in ("i", "p", "fold") else "f8").tofile(f"{self.folder.name}/{name}.bin")
        entries = X.data.size if problem.sparse else 0
        facts = (FAMILIES[problem.loss], problem.n, problem.p, int(problem.sparse), entries, int(problem.intercept),
                 int(problem.nonnegative), repr(weight / self.scale))  # fmt: skip
        self._ask("load " + " ".join(str(fact) for fact in facts))

    def _run(self, kind, tolerance, alphas):
        np.asarray(self.scale * alphas, dtype="f8").tofile(f"{self.folder.name}/lambda.bin")
        self.seconds = float(self._ask(f"{kind} {tolerance!r} {len(alphas)}"))
        found = np.fromfile(f"{self.folder.name}/answer.bin", dtype="f8").reshape(-1, self.problem.p + 1)
        return answers(found[:, 1:], found[:, 0], self.unit)

    def fit(self, stop):
        tolerance, steps = stop if isinstance(stop, list) else (stop, 1)
        coefs, intercepts = self._run("path", tolerance, np.geomspace(self.top, self.problem.alpha, steps + 1)[1:])
        return coefs[-1:], intercepts[-1:]

    def path(self, stop, alphas):
        return self._run("path", stop, alphas)

    def cv(self, stop, alphas, folds):
        self._run("cv", stop, alphas)
