"""The options that `fit`, `path` and `cv` share, each written once."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

try:
    import typer
    from typer import Option
except ImportError:  # cli.main() says what to install
    typer = Option = None  # type: ignore[assignment]  # main() says what to install

_OUTPUTS = ("report", "picture")


@dataclasses.dataclass
class ModelOptions:
    """What is fitted to what; a field per option."""

    target: Annotated[
        list[str] | None,
        Option(
            help="Name or position (from 0) of the target column, the last by default; repeated for several targets. "
            "In an npz file the name of the array; for an npy file also a file.",
            rich_help_panel="Data",
        ),
    ] = None
    time: Annotated[
        str | None,
        Option(help="Survival times: a column of FILE, with --event; the loss is then cox.", rich_help_panel="Data"),
    ] = None
    event: Annotated[
        str | None,
        Option(help="Whether a time ends with an event (1) or is censored (0): a column.", rich_help_panel="Data"),
    ] = None
    strata: Annotated[
        str | None,
        Option(help="Rows with a baseline hazard of their own, for cox: a column.", rich_help_panel="Data"),
    ] = None
    task: Annotated[
        str | None,
        Option(
            help="Tasks with rows and coefficients of their own: a column of FILE, or a file with a name per line.",
            rich_help_panel="Data",
        ),
    ] = None
    weights: Annotated[
        str | None,
        Option(help="Sample weights: a column of FILE, or a file with one number per line.", rich_help_panel="Data"),
    ] = None
    offset: Annotated[
        str | None,
        Option(
            help="What is added to the scores: a column of FILE or log(COLUMN), as in log(exposure); or a file with "
            "one number per line.",
            rich_help_panel="Data",
        ),
    ] = None
    class_weight: Annotated[
        list[str] | None,
        Option(help="balanced, or label=weight; may be repeated.", rich_help_panel="Data"),
    ] = None
    drop: Annotated[list[str] | None, Option(help="Leave a column out; may be repeated.", rich_help_panel="Data")] = (
        None
    )
    memory: Annotated[
        str | None,
        Option(
            help="Leave the rows on the disk and take at most this much memory for them, such as 2GB; FILE may then be "
            "a folder or a quoted pattern. Cross-validation draws its folds at random.",
            rich_help_panel="Data",
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        Option(
            help="Let the workers of a Dask cluster read the rows and hold them: its address, such as tcp://host:8786. "
            "They must see the files under the same paths.",
            rich_help_panel="Data",
        ),
    ] = None
    header: Annotated[
        bool | None,
        Option(
            "--header/--no-header",
            help="Whether a CSV begins with names; its first lines tell by default.",
            rich_help_panel="Data",
        ),
    ] = None
    one_hot: Annotated[
        str | None,
        Option(
            help="auto: a column of 0 and 1 for every word of the columns that hold words; these form groups.",
            rich_help_panel="Data",
        ),
    ] = None
    missing: Annotated[
        str | None,
        Option(
            help="mean: the column's mean stands where a number is missing (a missing word is a word of its own); "
            "drop: rows that miss something are left out.",
            rich_help_panel="Data",
        ),
    ] = None
    max_features: Annotated[
        int | None,
        Option(
            help="The most columns that sparse data may have; a million, or 100 for every entry, by default.",
            min=1,
            rich_help_panel="Data",
        ),
    ] = None
    standardize: Annotated[
        bool,
        Option(
            "--standardize",
            help="Bring columns to mean 0 and deviation 1 for the fit, in cv within every fold; the model takes the "
            "data as it stands.",
            rich_help_panel="Data",
        ),
    ] = False
    loss: Annotated[
        str | None,
        Option(
            help="smoothed-hinge, hinge, squared-hinge, logistic, multinomial, multiclass-hinge; squared, huber, "
            "quantile, epsilon-insensitive; with the log link poisson, gamma, tweedie, negative-binomial; cox, with "
            "--time and --event. By default "
            "logistic for words and for two labels, else squared.",
            rich_help_panel="Loss",
        ),
    ] = None
    multi_class: Annotated[
        str,
        Option(
            help="What three labels or more are fitted by, with the logistic loss: multinomial (all together, the "
            "default) or ovr (each against the rest).",
            rich_help_panel="Loss",
        ),
    ] = "auto"
    ties: Annotated[str | None, Option(help="Of cox: breslow (the default) or efron.", rich_help_panel="Loss")] = None
    smoothing: Annotated[
        float | None, Option(help="Width of the smoothed hinge's quadratic piece.", rich_help_panel="Loss")
    ] = None
    delta: Annotated[float | None, Option(help="Where Huber's loss becomes linear.", rich_help_panel="Loss")] = None
    quantile: Annotated[float | None, Option(help="Quantile of the quantile loss.", rich_help_panel="Loss")] = None
    epsilon: Annotated[
        float | None, Option(help="Half width of the epsilon-insensitive tube.", rich_help_panel="Loss")
    ] = None
    power: Annotated[float | None, Option(help="Of the Tweedie variance, between 1 and 2.", rich_help_panel="Loss")] = (
        None
    )
    theta: Annotated[
        float | None,
        Option(help="Of the negative binomial: a mean m varies by m + m^2/theta.", rich_help_panel="Loss"),
    ] = None
    intercept: Annotated[
        bool, Option("--intercept/--no-intercept", help="Fit an unpenalised intercept.", rich_help_panel="Loss")
    ] = True
    penalty: Annotated[
        str,
        Option(
            help="lasso, elastic-net, ridge, slope, oscar, monotone, non-negative, box; with --groups: group-lasso, "
            "latent-group-lasso, sparse-group-lasso, group-max, exclusive-lasso; with --tree: tree-groups; along a "
            "line: fused-lasso, trend-filter; with --edges: graph-fused; with --shape: total-variation, low-rank, "
            "tensor-trace-norm; for several classes, targets or tasks: multi-task-lasso, multi-task-low-rank.",
            rich_help_panel="Penalty",
        ),
    ] = "lasso"
    l1_ratio: Annotated[
        float | None,
        Option(help="Share of the l1 norm in a penalty that has one.", rich_help_panel="Penalty"),
    ] = None
    order: Annotated[
        int | None, Option(help="Of differences: 1 for steps, 2 for kinks, …", rich_help_panel="Penalty")
    ] = None
    isotropic: Annotated[
        bool | None,
        Option("--isotropic/--anisotropic", help="Which total variation; isotropic by default.",
               rich_help_panel="Penalty", show_default=False),
    ] = None  # fmt: skip
    increasing: Annotated[
        bool | None,
        Option("--increasing/--decreasing", help="Of monotone.", rich_help_panel="Penalty", show_default=False),
    ] = None
    q: Annotated[float | None, Option("--q", help="Level of slope, 0.1 by default.", rich_help_panel="Penalty")] = None
    a: Annotated[
        float | None, Option("--a", help="Of oscar: weight of the l1 norm, 1 by default.", rich_help_panel="Penalty")
    ] = None
    b: Annotated[
        float | None, Option("--b", help="Of oscar: weight of the pairs, 0.1 by default.", rich_help_panel="Penalty")
    ] = None
    l1: Annotated[
        float | None, Option("--l1", help="Weight of an l1 norm beside the penalty.", rich_help_panel="Penalty")
    ] = None
    ridge: Annotated[
        float | None, Option(help="Weight of half the sum of squares beside the penalty.", rich_help_panel="Penalty")
    ] = None
    lower: Annotated[float | None, Option(help="Lower bound on every coefficient.", rich_help_panel="Penalty")] = None
    upper: Annotated[float | None, Option(help="Upper bound on every coefficient.", rich_help_panel="Penalty")] = None
    unpenalised: Annotated[
        list[str] | None,
        Option(help="A column, by name or number, without penalty; may be repeated.", rich_help_panel="Penalty"),
    ] = None
    groups: Annotated[
        str | None,
        Option(
            help="File of groups: JSON, lists of features by name; CSV lines group,feature; or GMT. With --one-hot the "
            "columns of FILE are groups by themselves.",
            rich_help_panel="Structure",
        ),
    ] = None
    groups_by: Annotated[
        str | None,
        Option(
            help="Groups from the names of columns: what stands before this separator, e.g. _",
            rich_help_panel="Structure",
        ),
    ] = None
    complete_groups: Annotated[
        bool,
        Option(
            "--complete-groups",
            help="A feature in no group becomes a group of its own (else it has no penalty).",
            rich_help_panel="Structure",
        ),
    ] = False
    edges: Annotated[
        str | None,
        Option(
            help="File of edges: JSON list of pairs, or CSV lines i,j; a third entry is a weight. Or from the data: "
            "correlation:0.5 (the smallest that joins) or glasso:0.005 (the graphical lasso's penalty).",
            rich_help_panel="Structure",
        ),
    ] = None
    tree: Annotated[
        str | None,
        Option(help="File of a tree: JSON child to parent, or CSV lines child,parent.", rich_help_panel="Structure"),
    ] = None
    shape: Annotated[
        str | None,
        Option(
            help="HxW or HxWxD: the grid, matrix or tensor that the features form, row by row.",
            rich_help_panel="Structure",
        ),
    ] = None
    mask: Annotated[
        str | None,
        Option(
            help="File of 0 and 1 (text or npy) of that shape: the features are the cells with 1.",
            rich_help_panel="Structure",
        ),
    ] = None
    feature_weights: Annotated[
        str | None,
        Option(
            help="File of weights in the penalty, one per feature: a number per line, or lines feature,weight.",
            rich_help_panel="Structure",
        ),
    ] = None
    group_weights: Annotated[
        str | None,
        Option(help="The same for groups or the nodes of a tree.", rich_help_panel="Structure"),
    ] = None
    term_weights: Annotated[
        str | None,
        Option(
            help="The same for differences (fused-lasso, trend-filter), modes (tensor-trace-norm) or ranks (slope), a "
            "number per line.",
            rich_help_panel="Structure",
        ),
    ] = None
    tol: Annotated[float, Option(help="Relative duality gap to reach.", rich_help_panel="Solver")] = 1e-6
    max_epochs: Annotated[int, Option(help="Passes over the data, at most, for a fit.", rich_help_panel="Solver")] = (
        10_000
    )
    seed: Annotated[int, Option(help="Same seed, same bits.", min=0, rich_help_panel="Solver")] = 0
    report: Annotated[
        str | None, Option(help="One page of HTML to write: proof, pictures and structure.", rich_help_panel="Output")
    ] = None
    picture: Annotated[str | None, Option(help="A picture to write, e.g. .png or .svg.", rich_help_panel="Output")] = (
        None
    )
    quiet: Annotated[
        bool, Option("--quiet", "-q", help="Print warnings and errors only.", rich_help_panel="Output")
    ] = False

    @property
    def files(self) -> list[str]:
        """The files that the options name, to be read: whatever exists under a name that is given, but for outputs."""
        given = [getattr(self, field.name) for field in dataclasses.fields(self) if field.name not in _OUTPUTS]
        words = [word for value in given for word in (value if isinstance(value, list) else [value])]
        return [word for word in words if isinstance(word, str) and os.path.exists(word)]

    def __post_init__(self) -> None:
        for name in ("target", "class_weight", "drop", "unpenalised"):  # an option that is not given may be [] or None
            setattr(self, name, list(getattr(self, name) or []))


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the fields of ModelOptions as parameters in the place of its parameter `options`."""
    hints = get_type_hints(command, include_extras=True)
    parameters = []
    for parameter in inspect.signature(command).parameters.values():
        if hints[parameter.name] is ModelOptions:
            shared = get_type_hints(ModelOptions, include_extras=True)
            parameters += [
                inspect.Parameter(
                    field.name, parameter.KEYWORD_ONLY, default=field.default, annotation=shared[field.name]
                )
                for field in dataclasses.fields(ModelOptions)
            ]
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=parameter.KEYWORD_ONLY))
    names = {field.name for field in dataclasses.fields(ModelOptions)}

    @functools.wraps(command)
    def run(**given: Any) -> Any | None:
        own = {name: value for name, value in given.items() if name not in names}
        return command(options=ModelOptions(**{name: given[name] for name in names if name in given}), **own)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect and typer look there
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__  # whoever looks at the signature must find this one
    return run
