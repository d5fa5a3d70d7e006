"""Reports of runs, as Markdown and as one HTML file, and what changed between two runs.

runs        a run folder or a published file, read
document    what a report is made of: headings, paragraphs, tables, figures
retrieval   the layouts of the paper's Tables 1 and 2
answers     the layout of its Table 3
sweeps      its Figures 2(a) and 2(b): how scores change with K and L
plot        a line chart as SVG
paired      every method against the reference
costs       milliseconds, tokens, money
markdown    a document as Markdown
page        a document as HTML
build       the whole report
diff        two runs, question by question
"""
