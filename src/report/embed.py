#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the C source of the report's page: embed.py PAGE.html SCRIPT.js... PAGE.c"""

import pathlib
import sys

DATA, PROGRAM = "<!--DATA-->", "<!--PROGRAM-->"


def array(name, text):
    numbers = ",".join(map(str, [*text.encode(), 0]))
    return f"const char {name}[] = {{{numbers}}};\n"


html, *scripts, to = map(pathlib.Path, sys.argv[1:])
begin, end = html.read_text().split(DATA)
program = "\n".join(script.read_text() for script in scripts)
end = end.replace(PROGRAM, f"<script>\n{program}</script>")
to.write_text(f'#include "report/page.h"\n{array("ky_report_page_begin", begin)}{array("ky_report_page_end", end)}')
