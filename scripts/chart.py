#!/usr/bin/env python3
"""Draws a Vega-Lite specification, as `moegauge export --format vega` writes it, as SVG or PNG through
vl-convert; no browser is needed. Arguments: the specification, the picture (.svg or .png)."""

import json
import os
import sys

try:
    import vl_convert
except ImportError:
    vl_convert = None

# The colours of the report's page on a light ground.
CONFIG = {
    "background": "white",
    "range": {
        "category": ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a67c00", "#56b4e9", "#444444", "#7b4ea3"],
        "diverging": ["#f08a4b", "#f6b587", "#fbdcc4", "#f1f2f4", "#d3e6f5", "#9dcbee", "#5ba8e0"],
    },
    "header": {"labelFontSize": 13, "labelFontWeight": "bold", "labelAnchor": "start"},
    "legend": {"orient": "bottom", "labelLimit": 400, "symbolOpacity": 1},
    "style": {"limit": {"color": "#5b6470"}, "band": {"color": "#5b6470"}},
}


def main():
    if len(sys.argv) != 3 or not sys.argv[2].endswith((".svg", ".png")):
        print("usage: chart.py SPECIFICATION PICTURE.svg|PICTURE.png", file=sys.stderr)
        return 2
    if vl_convert is None:
        print("chart.py: vl_convert is not installed here; scripts/setup report installs it, and scripts/python finds it",
              file=sys.stderr)
        return 2
    source, target = sys.argv[1:]
    try:
        with open(source, encoding="utf-8") as file:
            spec = json.load(file)
        version = "v" + vl_convert.get_vegalite_versions()[-1]
        if target.endswith(".svg"):
            picture = vl_convert.vegalite_to_svg(spec, vl_version=version, config=CONFIG).encode()
        else:
            picture = vl_convert.vegalite_to_png(spec, vl_version=version, config=CONFIG, scale=2)
    except (OSError, ValueError) as error:
        print(f"chart.py: {source}: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    with open(target + ".new", "wb") as out:
        out.write(picture)
    os.replace(target + ".new", target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
