"""Settings of the site: make docs builds it into build/site."""

from __future__ import annotations

import importlib.metadata

project = "tidemill"
version = release = importlib.metadata.version("tidemill")
html_title = f"tidemill {version}"
html_theme = "furo"
html_show_copyright = False
html_copy_source = False
extensions = ["myst_parser"]
exclude_patterns = ["decisions"]
myst_heading_anchors = 4
highlight_language = "text"
nitpicky = True
html_static_path = ["style"]
html_css_files = ["site.css"]
