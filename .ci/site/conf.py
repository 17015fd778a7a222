"""Sphinx settings of the documentation's site; ``build.py`` beside this file is what builds it."""

from __future__ import annotations

from patchkit import __version__

project = "patchkit"
release = version = __version__
project_copyright = "the patchkit developers"
extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
# The links are those that work in the repository, to files and to headings.
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence"]
highlight_language = "text"
nitpicky = True
html_theme = "furo"
html_title = f"patchkit {__version__}"
html_show_sourcelink = False
html_copy_source = False
copybutton_exclude = ".linenos, .gp, .go"
