"""Charts of results, for the page and for notebooks.

choice    which chart suits a result, decided from its columns alone
drawing   the chart as Vega-Lite, and as SVG
drawer    the process that draws (extras ``serve`` and ``notebook``)
"""
