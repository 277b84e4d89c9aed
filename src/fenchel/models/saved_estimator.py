"""Estimators as files, and as models of scikit-learn."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from ..losses import known_losses
from ..penalties.plain import from_plain, to_plain
from ..solver.result import Result, Status
from . import preparation as helpers
from .columns import Scaling
from .estimators import StructuredClassifier, StructuredRegressor
from .saved_model import Model, _loss_name, certificate_of
from .survival import CoxRegressor


def to_model(estimator: Any) -> Model:
    """A fitted estimator as the model that files hold."""
    check_is_fitted(estimator)
    loss = estimator._loss_in_use()  # of three classes, say, all together, or each against the rest
    coef = estimator._plain_coef()
    intercept = np.asarray(estimator.intercept_, dtype=float)
    names = getattr(estimator, "feature_names_in_", None)
    classes = getattr(estimator, "classes_", None)
    tasks = getattr(estimator, "tasks_", None)
    return Model(
        coef, float(intercept.ravel()[0]) if coef.ndim == 1 else intercept, _loss_name(loss), dict(vars(loss)),
        repr(estimator.penalty_), estimator.alpha_,
        features=None if names is None else [str(name) for name in names],
        classes=None if classes is None else classes.tolist(),
        certificate=certificate_of(estimator.result_, estimator.tol),
        task=None if tasks is None else "task", tasks=None if tasks is None else tasks.tolist(),
        scaling=None if estimator.scale_ is None else Scaling(estimator.scale_),
        offset="offset" if estimator._with_offset else None, written=to_plain(estimator.penalty_),
        baseline=estimator.baseline() if loss.across_rows else None,
    )  # fmt: skip


def load_model(path: str | os.PathLike[str]) -> StructuredClassifier | StructuredRegressor | CoxRegressor:
    """The estimator that was saved by ``model.save(path)``, or the model that the command line wrote.

    One that was cross-validated comes back with the alpha that was picked, as a :class:`fenchel.StructuredClassifier`,
    :class:`fenchel.StructuredRegressor` or :class:`fenchel.CoxRegressor`. Its coefficients, certificate, names and
    penalty are those that were saved; the history of the run is not. A penalty that no file can hold (one with a
    function or a map) is None.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    StructuredClassifier, StructuredRegressor or CoxRegressor, fitted
    """
    model = Model.load(os.fspath(path))
    loss: Any = known_losses()[model.loss](**model.loss_params)
    proof = model.certificate
    penalty = from_plain(model.written)
    common: dict[str, Any] = {"penalty": penalty, "alpha": model.alpha, "standardize": model.scaling is not None,
                              "tol": proof.get("tol") or 1e-6}  # fmt: skip
    out: Any
    if loss.across_rows:
        out = CoxRegressor(ties=loss.ties, **common)
        out.restore_baseline(model.baseline)
    elif loss.classification:
        together = loss.coupled or len(model.classes or ()) < 3
        out = StructuredClassifier(loss=loss, multi_class="auto" if together else "ovr", **common)
    else:
        out = StructuredRegressor(loss=loss, **common)
    out.result_ = Result.remembered(
        model.coef, model.intercept, primal=proof["primal"], dual=proof["dual"],
        status=next(status for status in Status if str(status) == proof["status"]), epochs=int(proof["epochs"]),
        seconds=proof["seconds"] or 0.0, reason=proof["reason"],
    )  # fmt: skip
    out.n_iter_, out.gap_, out.status_ = out.result_.epochs, out.result_.gap, out.result_.status
    out.alpha_, out.penalty_, out.relax_, out.n_features_in_ = model.alpha, penalty, 0.0, model.n_features
    out.scale_ = None if model.scaling is None else model.scaling.scale
    out._with_offset = model.offset is not None
    if model.features is not None:
        out.feature_names_in_ = np.array(model.features, dtype=object)
    if model.tasks is not None:
        out.tasks_ = np.array(model.tasks)
    if loss.classification:
        out.classes_ = np.array(model.classes)
    for name, value in out._shaped_plainly(model.coef, model.intercept).items():
        setattr(out, name, value)
    return out  # type: ignore[no-any-return]  # one of the two


def to_sklearn(estimator: Any) -> Any:
    """A fitted model of scikit-learn with the same predictions; see :meth:`fenchel.StructuredRegressor.to_sklearn`."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import LabelBinarizer
    from sklearn.svm import LinearSVC

    check_is_fitted(estimator)
    for name, why in (("tasks_", "tasks"), ("_with_offset", "an offset")):
        if getattr(estimator, name, False) is not False:
            raise ValueError(
                f"{type(estimator).__name__} was fitted with {why}, which scikit-learn's models do not have"
            )
    loss = helpers.as_loss(estimator.loss, estimator._classification)
    tried = np.linspace(-2.0, 2.0, 9)  # scores at which the loss is asked how it predicts
    common = {"n_features_in_": estimator.n_features_in_, "n_iter_": np.array([estimator.n_iter_])}
    if hasattr(estimator, "feature_names_in_"):
        common["feature_names_in_"] = estimator.feature_names_in_
    coef, intercept = estimator.coef_, estimator.intercept_
    if not estimator._classification:
        means = loss.mean(tried)
        if np.allclose(means, tried):
            return _with(LinearRegression(), common, coef_=coef, intercept_=intercept)
        if np.allclose(means, np.exp(tried)) and coef.ndim == 1:
            out = _with(PoissonRegressor(), common, coef_=coef, intercept_=intercept)
            out._base_loss = out._get_loss()
            return out
        raise ValueError(f"no model of scikit-learn predicts as {loss!r} does")
    classes = estimator.classes_
    if estimator._loss_in_use().coupled and loss.likelihood:  # the softmax of all classes together
        return _with(LogisticRegression(), common, coef_=coef, intercept_=intercept, classes_=classes)
    if not (loss.likelihood and np.allclose(loss.probability(tried), expit(tried))):
        return _with(LinearSVC(), common, coef_=coef, intercept_=intercept, classes_=classes)
    if len(classes) == 2:
        return _with(LogisticRegression(), common, coef_=coef, intercept_=intercept, classes_=classes)
    each = [
        _with(LogisticRegression(), common, coef_=coef[k : k + 1], intercept_=intercept[k : k + 1],
              classes_=np.array([0, 1])) for k in range(len(classes))
    ]  # fmt: skip
    labels = LabelBinarizer(sparse_output=True).fit(classes)
    out = _with(OneVsRestClassifier(LogisticRegression()), common, estimators_=each, label_binarizer_=labels)
    if not hasattr(out, "classes_"):  # a property of the labels before scikit-learn 1.9
        out.classes_ = classes
    return out


def _with(model: Any, common: dict[str, Any], **fitted: Any) -> Any:
    for name, value in {**common, **fitted}.items():
        setattr(model, name, value)
    return model
