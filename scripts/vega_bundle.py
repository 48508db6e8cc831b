#!/usr/bin/env python3
"""Writes the JavaScript of Vega, Vega-Lite and Vega-Embed, as vl-convert-python carries it, into one
file that `moegauge report` puts into its pages. Argument: the file."""

import os
import sys

import vl_convert

NOTICE = """/* Vega {vega}, Vega-Lite {lite}, Vega-Embed {embed}: Copyright University of Washington Interactive
   Data Lab and contributors, BSD 3-Clause License; bundled by vl-convert {convert}. */
"""


def bundle():
    lite = vl_convert.get_vegalite_versions()[-1]
    script = vl_convert.javascript_bundle(vl_version=lite)
    # The end of a script element is the one thing that must not stand inside one.
    script = script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return NOTICE.format(vega=vl_convert.get_vega_version(), lite=lite, embed=vl_convert.get_vega_embed_version(),
                         convert=vl_convert.__version__) + script


def main():
    target = sys.argv[1]
    with open(target + ".new", "w", encoding="utf-8") as out:
        out.write(bundle())
    os.replace(target + ".new", target)


if __name__ == "__main__":
    main()
