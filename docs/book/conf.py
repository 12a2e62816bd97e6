"""How Sphinx sets the book. `cns book` writes its pages; nothing is run here, and no page asks the network."""

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import cnslib.core.pins  # noqa: F401  (before anything numerical, for the reference imports the library)

project = "The CNS-Bench compendium"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
master_doc = "index"
exclude_patterns = ["extra", "opening.md"]
html_extra_path = ["extra"]
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_theme = "sphinx_book_theme"
html_title = project
html_copy_source = False
html_show_search_summary = False  # it would fetch each page, which a browser refuses on a disk
html_show_copyright = html_show_sphinx = False
html_context = {"default_mode": "light"}
html_theme_options = {"show_toc_level": 2, "use_download_button": False, "use_fullscreen_button": False, "footer_content_items": []}
nb_execution_mode = "off"
nb_code_prompt_show, nb_code_prompt_hide = "Preparation: show {type}", "Hide {type}"
nb_merge_streams = True
nb_render_markdown_format = "myst"  # the only one that sets tables, which the settings of every chapter are
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header", "misc.highlighting_failure"]


autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88


def set_math(app, doctree):
    """Sets formulas as MathML, which browsers draw themselves; any other renderer would have to be fetched."""
    for found in [*doctree.findall(nodes.math), *doctree.findall(nodes.math_block)]:
        block = isinstance(found, nodes.math_block)
        formula = tex2mathml(found.astext(), as_block=block)
        found.replace_self(nodes.raw("", f'<div class="formula">{formula}</div>' if block else formula, format="html"))


def as_written(app, what, name, thing, options, lines):
    """Docstrings are plain text with code between single ticks and lists of dashes: says so in Sphinx's markup."""
    found = []
    for line in lines:
        if line.startswith("- ") and found and found[-1] and not found[-1].startswith(("- ", "  ")):
            found.append("")
        found.append("``".join(plain(part, odd) for odd, part in enumerate(line.split("`"))))
    lines[:] = found


def plain(part, code):
    """A part of a line between ticks: code stays, and in the rest nothing is markup."""
    return part if code % 2 else re.sub(r"([*|_\\])", r"\\\1", part)


def setup(app):
    """Connects what this book does to every page."""
    app.connect("doctree-read", set_math)
    app.connect("autodoc-process-docstring", as_written)
