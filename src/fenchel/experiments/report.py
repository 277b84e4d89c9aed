"""One page of HTML that needs nothing beside itself: claims, figures, tables, settings."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator
from typing import Any

from ..report import embed, page
from .claims import Claim
from .settings import LABELS, Settings
from .traces import Traces, median, reach


def make(
    settings: Settings,
    traces: Traces,
    claims: list[Claim],
    tuned: dict[tuple[str, str], Any],
    left_out: list[tuple[str, str, str]],
    abouts: dict[str, Any],
    machine: dict[str, Any],
    pictures: dict[str, bytes],
    studies: list[dict[str, Any]],
) -> str:
    """The page."""
    title = {"artificial": "artificial data", "real": "real data"}[settings.experiment]
    shown = sum(claim.shown is True for claim in claims)
    measured = sum(claim.shown is not None for claim in claims)
    parts = [
        f"<h1>SDCA-ADMM, rerun: {title}</h1>",
        f"<p class=lead>{_lead(settings, abouts)} {shown} of {measured} claims are shown by this run"
        + (" (a quick one: fewer repetitions, shorter windows, a coarser grid)" if settings.quick else "")
        + ".</p>",
        "<h2>What the paper claims, and what this run shows</h2>",
        _claims(claims),
        "<h2>Figures</h2>",
        *_figures(settings, pictures),
        "<h2>How long to which accuracy</h2>",
        _times(settings, traces),
        "<h2>Step sizes of the baselines</h2>",
        _tuning(settings, tuned),
        _rho(settings, studies),
        "<h2>Settings</h2>",
        _settings(settings, left_out, machine),
    ]
    return page(f"SDCA-ADMM, rerun: {title}", parts)


def _lead(settings: Settings, abouts: dict[str, Any]) -> str:
    sizes = "; ".join(
        f"{html.escape(data.title)}: " + ", ".join(f"{value:,} {key}" for key, value in abouts[data.name].items())
        for data in settings.data
    )
    return f"{sizes}. {settings.repetitions} repetitions."


def _claims(claims: list[Claim]) -> str:
    badge = {True: "yes", False: "no", None: "na"}
    rows = "".join(
        f"<tr><td>({claim.key})</td><td>{html.escape(claim.text)}</td>"
        f'<td><span class="{badge[claim.shown]}">{claim.verdict}</span></td>'
        f"<td>{html.escape(claim.measured or 'A curve that it needs was not run.')}"
        f"<p class=note>Criterion: {html.escape(claim.criterion)}</p></td></tr>"
        for claim in claims
    )
    return f"<table><tr><th></th><th>claim</th><th>this run</th><th>measured</th></tr>{rows}</table>"


def _figures(settings: Settings, pictures: dict[str, bytes]) -> Iterator[str]:
    captions = {
        "time": "Mean over repetitions against seconds inside the method (preparation and evaluation are not counted); "
        "shaded: the standard deviation. The excess is measured against an optimum that is certified to the dotted "
        "line. Dotted in the other panels, which have a logarithmic axis of time: the value at the optimum.",
        "epochs": "The same against passes over the data.",
        "studies": "What block size, order and the quadratic term do to SDCA-ADMM (the paper's settings).",
    }
    for name, content in pictures.items():
        if name.endswith(".png"):
            kind = name.rsplit("-", 1)[1].removesuffix(".png")
            yield embed(content, "png", captions[kind])


def _times(settings: Settings, traces: Traces) -> str:
    head = "".join(f"<th>{level:.0e}</th>" for level in settings.levels)
    out = []
    for data in settings.data:
        rows = []
        for curve in traces.curves(data.name):
            these = traces.of(data.name, curve)
            cells = []
            for level in settings.levels:
                seconds, epochs = median(these, reach, level), median(these, reach, level, axis="epoch")
                cells.append(f"<td class=n>{_time(seconds, epochs)}</td>")
            last = median(these, lambda trace: float(trace.epoch[-1]))
            rows.append(f"<tr><td>{_label(curve)}</td>{''.join(cells)}<td class=n>{last:,.0f}</td></tr>")
        out.append(
            f"<div class=wide><table><caption>{html.escape(data.title)}: seconds (epochs) to a relative excess, "
            f"medians over repetitions; window {data.window:g} s</caption>"
            f"<tr><th></th>{head}<th>epochs in all</th></tr>{''.join(rows)}</table></div>"
        )
    return "".join(out)


def _time(seconds: float, epochs: float) -> str:
    return f"{seconds:.3g} ({epochs:,.0f})" if math.isfinite(seconds) else "-"


def _tuning(settings: Settings, tuned: dict[tuple[str, str], Any]) -> str:
    if not tuned:
        return "<p>No method of this run has a step size to tune.</p>"
    rows = []
    for (dataset, curve), found in tuned.items():
        chosen = found["chosen"]
        ends = (min(settings.tuning.eta0), max(settings.tuning.eta0))
        edge = " (an end of the grid)" if chosen["eta0"] in ends else ""
        rows.append(
            f"<tr><td>{html.escape(settings.dataset(dataset).title)}</td><td>{_label(curve)}</td><td>{chosen['schedule']}</td>"
            f"<td>{chosen['report']}</td><td>{chosen['eta0']:g}{edge}</td><td class=n>{len(found['tried'])}</td></tr>"
        )
    tuning = settings.tuning
    how = (
        f"Every point of the grid ran for {tuning.share:.0%} of the window on a seed that no curve uses"
        + (
            ", the best eta0 of every schedule and iterate for a whole window, from the best of these its neighbours "
            "as long as that helped"
            if tuning.long
            else ""
        )
        + "; the lowest objective at the end was chosen. SDCA-ADMM and Batch-ADMM keep the paper's rho = 0.1."
    )
    grid = (
        f"eta0 in {', '.join(f'{x:g}' for x in tuning.eta0)}; the schedule of each method's general theory and the one "
        f"for strongly convex penalties; the iterate reported: {' or '.join(tuning.reports)}."
    )
    return (
        f"<p>{html.escape(how)} Grid: {html.escape(grid)} Every run is in <code>tuning.csv</code>.</p>"
        f"<table><tr><th>data</th><th>method</th><th>schedule</th><th>iterate</th><th>eta0</th><th>runs</th></tr>{''.join(rows)}</table>"
    )


def _rho(settings: Settings, studies: list[dict[str, Any]]) -> str:
    """Seconds of SDCA-ADMM and Batch-ADMM for every rho that was tried."""
    found = {}
    for row in studies:
        if row["study"] == "rho":
            case = row["case"]
            found[case["dataset"], case["method"], case["rho"]] = (row["seconds"], row["epochs"])
    if not found:
        return ""
    steps = sorted({key[2] for key in found})
    head = "".join(f"<th>{rho:g}</th>" for rho in steps)
    rows = []
    for dataset, method in dict.fromkeys(key[:2] for key in found):
        cells = "".join(f"<td class=n>{_time(*found[dataset, method, rho])}</td>" for rho in steps)
        title = html.escape(settings.dataset(dataset).title)
        rows.append(f"<tr><td>{title}</td><td>{LABELS[method].split(' (')[0]}</td>{cells}</tr>")
    return (
        "<div class=wide><table><caption>SDCA-ADMM (else as in the paper) and Batch-ADMM for other rho, on the "
        f"held-out seed: seconds (epochs) to a relative excess of {settings.studies.level:.0e}</caption>"
        f"<tr><th>data</th><th>method</th>{head}</tr>{''.join(rows)}</table></div>"
    )


def _settings(settings: Settings, left_out: list[tuple[str, str, str]], machine: dict[str, Any]) -> str:
    missing = "".join(
        f"<p>Left out: {_label(curve)} on {html.escape(dataset)}: {html.escape(reason)}.</p>"
        for dataset, curve, reason in left_out
    )
    content = html.escape(json.dumps({"settings": settings.as_dict(), "machine": machine}, indent=1))
    facts = ", ".join(f"{key} {value}" for key, value in machine.items())
    return (
        f"<p>Paper: blocks of 50, rho = 0.1, gamma = 1/n, eta_Z = 1.1 sigma_max(Z_I'Z_I), eta_B = sigma_max(BB') + 1, "
        f"smoothed hinge. Machine: {html.escape(facts)}.</p>{missing}"
        f"<details><summary>All settings</summary><pre>{content}</pre></details>"
    )


def _label(curve: str) -> str:
    return html.escape(LABELS.get(curve, curve))
