"""How Sphinx sets the book. `cns book` writes its pages; nothing is run here, and no page asks the network."""

from docutils import nodes

project = "The CNS-Bench compendium"
extensions = ["myst_nb"]
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
html_theme_options = {"show_toc_level": 2, "use_download_button": False, "use_fullscreen_button": False}
nb_execution_mode = "off"
nb_code_prompt_show, nb_code_prompt_hide = "Preparation: show {type}", "Hide {type}"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header", "misc.highlighting_failure"]


def plain_math(app, doctree):
    """Shows formulas as they are written: a renderer would have to be fetched."""
    for found in [*doctree.findall(nodes.math), *doctree.findall(nodes.math_block)]:
        kind = nodes.literal_block if isinstance(found, nodes.math_block) else nodes.literal
        found.replace_self(kind(found.astext(), found.astext()))


def setup(app):
    """Connects what this book does to every page."""
    app.connect("doctree-read", plain_math)
