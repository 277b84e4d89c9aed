"""How the site is built: python -m sphinx -W docs docs/_build/html (see index.md for the whole command)."""

from __future__ import annotations

import pathlib
import re
import sys

from docutils import nodes
from docutils.utils.math import latex2mathml

import fenchel

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import reference  # noqa: E402

project = "fenchel"
author = "the fenchel developers"
copyright = author
version = release = fenchel.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.codeobj.json", "**/GALLERY_HEADER.rst"]

# -- pages ------------------------------------------------------------------------------------------

myst_heading_anchors = 3
smartquotes = False  # B'w is a formula
myst_enable_extensions = ["colon_fence"]

# -- reference --------------------------------------------------------------------------------------

default_role = "literal"  # docstrings put names in single backticks
autosummary_generate = False  # reference.py writes the pages
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_typehints = "none"  # the docstrings say more
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# -- gallery ----------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "show_signature": False,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "image_srcset": ["2x"],
    "abort_on_example_error": False,
    "write_computation_times": False,
}

# -- look: everything is served from the site itself, nothing is fetched from elsewhere -------------

html_theme = "furo"
html_title = "fenchel"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False


def formula(visitor, node, block):
    """A formula as MathML, which browsers draw by themselves: no script, no fonts to fetch."""
    tex = node.astext().replace(r"\dots", r"\ldots")  # which docutils does not know
    code = latex2mathml.tex2mathml(tex, as_block=block)
    visitor.body.append(f'<div class="math">{code}</div>' if block else code)


def inline_formula(visitor, node):
    formula(visitor, node, block=False)
    raise nodes.SkipNode


def block_formula(visitor, node):
    formula(visitor, node, block=True)
    raise nodes.SkipNode


def plain_bars(app, what, name, obj, options, lines):
    """Docstrings write |x| for absolute values, which would be a substitution in reStructuredText."""
    for k, line in enumerate(lines):
        pieces = re.split(r"(`[^`]*`)", line)  # formulas and code are left alone
        lines[k] = "".join(piece if piece.startswith("`") else piece.replace("|", r"\|") for piece in pieces)


def setup(app):
    reference.write(HERE / "api")
    app.connect("autodoc-process-docstring", plain_bars, priority=400)  # before numpydoc
    app.add_html_math_renderer("mathml", (inline_formula, None), (block_formula, None))
