"""The command `fenchel`: demo, fit, path, cv, predict, inspect, warmup, reproduce.

Exit codes: 0 when an answer was written (a warning tells if its gap is larger than asked), 2 for an
error (one line on stderr, which names what was written before it, if anything was), 130 after Ctrl-C. Ctrl-C during a
fit or a path keeps the best answer: it is written with its status and its gap, and the exit code still says 130.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Annotated, Any

try:
    import rich  # noqa: F401
    import typer
    from typer.core import TyperGroup
except ImportError:  # main() says what to install
    typer, TyperGroup = None, object  # type: ignore[assignment, misc]

from .. import __version__
from ..foundation.files import written
from ..foundation.interrupts import interrupts_noticed


def main() -> None:
    """Run the command line."""
    if typer is None:
        print("fenchel: error: the command line needs typer and rich: pip install 'fenchel[cli]'", file=sys.stderr)
        sys.exit(2)
    make_app()(prog_name="fenchel")


def make_app() -> typer.Typer:
    """The typer application."""
    from .demo import demo
    from .fit import fit
    from .inspect import inspect
    from .options import expanded
    from .path import cv, path
    from .predict import predict
    from .reproduce import reproduce
    from .warmup import warmup

    app = typer.Typer(
        help="Linear models with structured sparsity, every answer with a certified duality gap.", cls=OneLineErrors,
        no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    app.callback()(_global)
    for command in (demo, expanded(fit), expanded(path), expanded(cv), predict, inspect, warmup, reproduce):
        app.command()(_guarded(command))
    return app


class OneLineErrors(TyperGroup):
    """Usage errors as one line on stderr, like all others."""

    def main(self, *args: Any, standalone_mode: bool = True, **kwargs: Any) -> Any:
        if not standalone_mode:
            return super().main(*args, **kwargs | {"standalone_mode": False})
        try:
            code = super().main(*args, **kwargs | {"standalone_mode": False})
        except Exception as caught:
            error: Any = caught
            # the family of usage errors is click's, which typer brings along under a name that has changed
            if not hasattr(error, "format_message"):
                raise
            message = " ".join(error.format_message().split())
            if not message or type(error).__name__ == "NoArgsIsHelpError":
                error.show()
            else:
                command = getattr(getattr(error, "ctx", None), "command_path", "").split()[1:]
                where = " ".join(["fenchel", *command, "--help"])
                print(f"fenchel: error: {message.rstrip('.')} (see {where})", file=sys.stderr)
            sys.exit(error.exit_code)
        sys.exit(code or 0)


def _guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, with expected errors as one line on stderr and exit code 2, and Ctrl-C as 130 wherever it hits."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any | None:
        written.clear()
        with interrupts_noticed() as caught, _one_line_warnings():
            try:
                return command(*args, **kwargs)
            except (BrokenPipeError, typer.Exit):
                raise
            except KeyboardInterrupt:
                pass
            except (ValueError, OSError, ImportError, MemoryError) as error:
                if not caught:  # else it is what Ctrl-C has left behind
                    message = " ".join(str(error).split()) or type(error).__name__
                    print(f"fenchel: error: {message}{_written_so_far()}", file=sys.stderr)
                    raise typer.Exit(2) from None
            except Exception:
                if not caught:
                    raise
        print(f"fenchel: interrupted{_written_so_far() or '; nothing was written'}", file=sys.stderr)
        raise typer.Exit(130) from None

    return run


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Warnings for users as lines on stderr, without a place in the source."""
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                print(f"fenchel: warning: {' '.join(str(message).split())}", file=sys.stderr)
            else:
                before(message, category, *place, **more)

        warnings.showwarning = show
        yield


def _written_so_far() -> str:
    return f" (written before: {', '.join(written)})" if written else ""


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"fenchel {__version__}")
        raise typer.Exit


def _import(modules: list[str] | None) -> None:
    """Import what the user names, from the folder at hand too."""
    for module in modules or []:
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        try:
            importlib.import_module(module)
        except ImportError as error:
            print(f"fenchel: error: --import {module}: {error}", file=sys.stderr)
            raise typer.Exit(2) from None


def _global(
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            callback=_import,
            is_eager=True,
            metavar="MODULE",
            help="Import a module first, such as one that registers a loss or a penalty of your own.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
