"""One pipeline from a store to tables and figures: HTML, SVG, PDF, Markdown, CSV, LaTeX, JSON, and the terminal.

read.py makes a `Study` (study.py) of a directory, grouping.py of results. tables.py makes the `Sheet`s (sheet.py) of a
study; page.py, terminal.py, sheet.py and latex.py write them. figures.py draws. summary.py is for programs.
"""
