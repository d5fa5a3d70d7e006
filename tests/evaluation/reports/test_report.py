"""The whole report of small runs whose figures are computed by hand."""

from __future__ import annotations

import json
import runpy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import UsageError
from dbrag.evaluation.report import summary_table
from dbrag.evaluation.reports.build import Report, make_report, write_report
from dbrag.evaluation.reports.costs import Price
from dbrag.evaluation.reports.document import Figure, Heading, Table
from dbrag.evaluation.reports.markdown import markdown_of
from dbrag.evaluation.reports.page import html_of

from .made import not_run, recall, record, write_run

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "experiments" / "results"
SPIDER = ("database", 157, 779)
elsewhere = runpy.run_path(str(ROOT / "scripts" / "check_site.py"))["elsewhere"]


def tables(report: Report, first: str) -> list[Table]:
    """The tables whose first column is titled so."""
    blocks = report.document.blocks
    return [one for one in blocks if isinstance(one, Table) and one.header[0] == first]


def rows(table: Table) -> dict[str, dict[str, str]]:
    names = table.header[1:]
    return {r[0]: dict(zip(names, r[1:], strict=True)) for r in table.rows if len(r) > 1}


def titles(report: Report) -> list[str]:
    return [one.text for one in report.document.blocks if isinstance(one, Heading)]


RANKED = [
    recall("dev-0", "a", 1, 1.0),
    recall("dev-1", "a", 1, 1.0),
    recall("dev-2", "b", 1, 0.0),
    recall("dev-3", "b", 2, 0.5),
]


def test_recall_is_laid_out_as_in_table_1(tmp_path: Path) -> None:
    ours = write_run(tmp_path / "ours", RANKED, "retrieval", "hybrid", data=SPIDER)
    all_ = [recall(r["id"], r["db_id"], r["n_tables"], 1.0) for r in RANKED]
    best = write_run(tmp_path / "best", all_, "retrieval", "jar", data=SPIDER)
    report = make_report([ours, best])
    mine, published = tables(report, "method")[:2]
    found = rows(mine)["ours"]
    assert found["1-table (3)"] == "66.7"
    assert found["2-table (1)"] == "50.0"
    assert found["average"] == "62.5"  # 2.5 of 4
    assert found["mean of groups"] == "58.3"  # (2/3 + 1/2) / 2
    assert found["CR@5"] == "50.0"
    assert found["R@1"] == "31.2"
    assert found["95% by databases"] == "25.0 to 100.0"  # draws: a a, a b, b b
    assert found["the paper"] == "89.5 Coarse-rank"
    assert rows(mine)["best"]["average"] == "**100.0**"
    assert rows(mine)["best"]["the paper"] == "93.0 JAR (Coarse-rank)"
    assert rows(mine)["best"]["R@50"] == found["R@50"] == "100.0"  # no best where all are
    assert rows(published)["DBRAG (Relevant Rows)"]["average"] == "95.8"
    assert rows(published)["DBRAG (Relevant Rows)"]["3-table (57)"] == "87.1"
    assert report.to_dict()["runs"][0]["mean_of_groups"]["R@5"] == pytest.approx(0.583333)


def test_only_spider_stands_beside_the_paper(tmp_path: Path) -> None:
    report = make_report([write_run(tmp_path / "ours", RANKED, "retrieval", "hybrid")])
    assert "the paper" not in tables(report, "method")[0].header
    assert not [title for title in titles(report) if title.startswith("The paper")]


def test_of_a_single_database_questions_are_drawn(tmp_path: Path) -> None:
    records = [recall(f"q-{i}", "mine", 1, float(i < 3)) for i in range(4)]
    run = write_run(tmp_path / "run", records, "retrieval", data=("mine", 1, 14))
    found = rows(tables(make_report([run]), "method")[0])["run"]
    assert found["95% by databases"] == "25.0 to 100.0 (questions)"
    one = write_run(tmp_path / "one", records[:1], "retrieval", data=("mine", 1, 14))
    assert rows(tables(make_report([one]), "method")[0])["one"]["95% by databases"] == "–"


def test_reranking_is_laid_out_as_in_table_2(tmp_path: Path) -> None:
    told = {"k": 15, "votes": 2, "valid": 1}
    orders = {"prior": {"R@5": 1.0}, "model": {"R@5": 0.5}}
    records = [
        recall(f"dev-{i}", "ab"[i % 2], 2, 0.75, orders=orders, rerank=told, stages={"rerank": 2.0})
        for i in range(4)
    ]
    settings = {"row_context": "random", "context_rows": 2, "rerank_k": 15}
    path = write_run(
        tmp_path / "r", records, "retrieval", "rerank", "openai:x", settings, data=SPIDER
    )
    report = make_report([path])
    layout, published = tables(report, "questions")
    assert rows(layout)["2-table (4)"] == {
        "r, before the model": "**100.0**",
        "r, the model alone": "50.0",
        "r, fused": "75.0",
    }
    assert rows(published)["average"]["GPT-3.5 (Turbo-0125)"] == "95.8"
    (asked,) = [one for one in tables(report, "run") if one.caption == "How the model was asked"]
    assert asked.rows == (("r", "openai:x", "random, 2 each", "15", "4", "50.0% of 8", "2,000"),)
    (recalls, _) = tables(report, "method")[:2]
    assert rows(recalls)["r, fused"]["the paper"] == "94.9 DBRAG (Random Rows)"


def test_a_method_over_a_base_is_no_reranking_by_a_model(tmp_path: Path) -> None:
    orders = {"base": {"R@5": 0.5, "CR@5": 0.0}}
    records = [recall(f"dev-{i}", "ab"[i % 2], 2, 1.0, orders=orders) for i in range(4)]
    jar = write_run(tmp_path / "jar", records, "retrieval", "jar:contriever", data=SPIDER)
    ours = write_run(tmp_path / "ours", records, "retrieval", "hybrid", data=SPIDER)
    report = make_report([jar, ours])
    found = rows(tables(report, "method")[0])
    assert (found["jar, its base"]["average"], found["jar, its base"]["the paper"]) == (
        "50.0",
        "80.6 Contriever",
    )
    assert found["jar"]["the paper"] == "90.3 JAR (Contriever)"
    assert "Reranking" not in titles(report)
    assert {pair.run for pair in report.pairs} == {"ours"}


def answer(id_: str, db: str, n: int, ex: float, p: float, r: float, **more: Any) -> Any:
    scores = {"EX": ex, "TableEM": 0.0, "TableEM-values": ex, "RowP": p, "RowR": r, "RowF1": 0.0}
    scores |= {"FirstEX": 0.0, "BestEX": 1.0, "RightSource": 1.0, "RightTables": ex}
    return record(id_, db, n, scores, **more)


def test_answers_are_laid_out_as_in_table_3_for_several_data_sets(tmp_path: Path) -> None:
    spider = [answer("dev-0", "a", 1, 1, 1, 1), answer("dev-1", "b", 2, 0, 0.5, 0),
              record("dev-2", "b", 2, {})]  # fmt: skip
    geo = [answer("dev-0", "geography", 1, 1, 1, 1)]
    paths = [
        write_run(tmp_path / "s", spider, data=SPIDER),
        write_run(tmp_path / "g", geo, data=("database", 1, 7)),
    ]
    report = make_report(paths)
    figures, groups = tables(report, "method")[:2]
    assert [row[0] for row in figures.rows if len(row) == 1] == [
        "Spider, dev.json, 3 of 4 questions",
        "GeoQuery, dev.json, 1 of 4 questions",
    ]
    found = rows(figures)["s"]
    assert found["EX"] == "33.3"  # the failed one counts
    assert (found["Row P"], found["Row R"]) == ("50.0", "33.3")
    assert found["Row F1"] == "40.0"  # 2 · 1/2 · 1/3 / (1/2 + 1/3), not a mean of F1s
    assert found["Cell F1"] == "–"  # these records tell no cells
    published = [row for row in figures.rows if row[0].startswith("MTQA")]
    at = figures.header.index
    assert [(r[at("Table EM")], r[at("Cell F1")]) for r in published] == [
        ("25.2", "29.6"),
        ("52.2", "41.3"),
    ]
    assert rows(groups)["s"] == {
        "1 table": "100.0",
        "2 tables": "0.0",
        "with WHERE": "0.0",
        "without": "100.0",
        "right database": "66.7",
        "exactly the gold tables": "33.3",
        "first program": "0.0",
        "best program": "66.7",
    }


def test_what_was_not_run_has_a_row_and_its_command(tmp_path: Path) -> None:
    ran = write_run(tmp_path / "ran", RANKED, "retrieval")
    missing = not_run(tmp_path / "dtr", "retrieval", "dtr", "weights missing", "hf download a/b")
    report = make_report([ran, missing])
    overview = tables(report, "run")[0]
    assert rows(overview)["dtr"]["state"] == "not run: weights missing"
    assert rows(overview)["dtr"]["questions"] == "–"
    row = "dtr: not run: weights missing (`hf download a/b`)"
    assert tables(report, "method")[0].rows[-1] == (row,)
    assert "```sh\nhf download a/b\n```" in markdown_of(report.document)
    assert report.to_dict()["runs"][1]["not_run"]["command"] == "hf download a/b"
    alone = make_report([missing])
    assert titles(alone) == ["Runs", "Not run"]


def test_what_was_not_run_on_other_data_stands_in_no_other_table(tmp_path: Path) -> None:
    other = write_run(tmp_path / "ran", RANKED, "retrieval", data=("big", 2, 90))
    answered = write_run(tmp_path / "a", [answer("dev-0", "a", 1, 1, 1, 1)])
    missing = not_run(tmp_path / "mtqa", "answers", "mtqa", "no torch", "pip install torch")
    report = make_report([other, answered, missing])
    recalls, answers_, _ = tables(report, "method")
    assert "not run" not in str(recalls)
    assert answers_.rows[-1] == ("mtqa: not run: no torch (`pip install torch`)",)


def test_time_tokens_and_cost(tmp_path: Path) -> None:
    tokens = {"prompt": 1000, "cached": 400, "completion": 50, "cache_hits": 1}
    records = [recall(f"q-{i}", "a", 1, 1.0, tokens=tokens, seconds=i + 0.5) for i in range(4)]
    remote = write_run(tmp_path / "far", records, "retrieval", model="openai:x")
    local = write_run(tmp_path / "near", records, "retrieval", model="local:x")
    none = write_run(tmp_path / "plain", RANKED, "retrieval")

    def paid(prices: dict[str, Price]) -> dict[str, dict[str, str]]:
        report = make_report([remote, local, none], prices=prices)
        return rows(next(t for t in tables(report, "run") if "ms, median" in t.header))

    found = paid({"openai:x": Price(2.0, 10.0, 0.5)})
    # 4 · (600 · 2 + 400 · 0.5 + 50 · 10) / 1e6 = 4 · 1900 / 1e6
    assert found["far"]["cost of the run"] == "0.0076 USD"
    assert found["far"]["of 1,000 questions"] == "1.9 USD"
    assert found["far"]["ms, median"] == "2,000"
    assert found["far"]["ms, 95th percentile"] == "3,500"
    assert (found["far"]["prompt tokens"], found["far"]["cached"]) == ("1,000", "400")
    assert found["far"]["remembered replies"] == "4"
    assert found["near"]["cost of the run"] == "0"
    assert found["plain"]["cost of the run"] == found["plain"]["prompt tokens"] == "0"
    assert paid({"openai:x": Price(2.0, 10.0)})["far"]["cost of the run"] == "0.01 USD"
    assert paid({})["far"]["cost of the run"] == "unknown"
    assert make_report([remote]).to_dict()["runs"][0]["cost"] is None


def sweep(folder: Path, rows_: str, k: int, r5: float) -> str:
    orders = {"prior": {"R@5": 0.9}, "model": {"R@5": r5 / 2}}
    records = [
        recall(
            f"q-{i}", "abc"[i % 3], 1, r5, orders=orders, rerank={"k": k, "votes": 1, "valid": 1}
        )
        for i in range(6)
    ]
    settings = {"row_context": rows_, "rerank_k": k, "m": 5}
    return write_run(folder, records, "retrieval", "rerank", "local:x", settings)


def test_the_sweep_of_k_is_figure_2a(tmp_path: Path) -> None:
    at = {("relevant", 10): 0.8, ("relevant", 50): 1.0, ("random", 10): 0.7, ("random", 50): 0.9}
    paths = [sweep(tmp_path / f"{r}{k}", r, k, r5) for (r, k), r5 in at.items()]
    report = make_report(paths)
    (figure,) = report.document.figures
    assert figure.name == "figure-2a"
    (values,) = tables(report, "Recall@5, percent")
    found = rows(values)
    assert found["relevant rows, fused"] == {"K = 10": "80.0 (80.0 to 80.0)",
                                             "K = 50": "100.0 (100.0 to 100.0)"}  # fmt: skip
    assert found["random rows, the model alone"]["K = 50"].startswith("45.0 ")
    assert "relevant rows, fused, 50: 100.0" in figure.svg
    again = sweep(tmp_path / "again", "random", 50, 0.1)
    twice = markdown_of(make_report([*paths, again]).document)
    assert "another run has the same budgets: again" in twice
    assert not make_report([paths[0], paths[2]]).document.figures  # one K is no sweep


def test_the_sweep_of_l_is_figure_2b(tmp_path: Path) -> None:
    paths = []
    for rows_, n, ex in [("none", 2, 0), ("relevant", 1, 0), ("relevant", 5, 1), ("random", 5, 1)]:
        settings = {"program_rows": "context", "row_context": rows_, "context_rows": n, "votes": 3}
        records = [answer(f"q-{i}", "ab"[i % 2], 1, ex, 1, 1) for i in range(4)]
        paths.append(write_run(tmp_path / f"{rows_}{n}", records, settings=settings))
    other = write_run(tmp_path / "other", records, settings={"row_context": "relevant"})
    report = make_report([*paths, other])
    (figure,) = report.document.figures
    assert figure.name == "figure-2b"
    (values,) = tables(report, "right answers, percent")
    found = rows(values)
    assert list(found["relevant rows, EX"]) == ["L = 0", "L = 1", "L = 5"]
    assert found["relevant rows, EX"]["L = 0"] == "0.0 (0.0 to 0.0)"
    assert found["relevant rows, EX"]["L = 5"] == "100.0 (100.0 to 100.0)"
    assert found["random rows, EX"]["L = 1"] == "–"


# ---- as files -----------------------------------------------------------------------


class Elements(HTMLParser):
    """What a page is made of; a tag that is not closed is an error."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parsed(html: str) -> Elements:
    found = Elements()
    found.feed(html)
    assert not found.open
    return found


def test_the_files_of_the_published_runs(tmp_path: Path) -> None:
    names = ["dbrag", "naive", "retrieval", *(f"40-rerank-{n}" for n in ("none", "relevant"))]
    runs = [RESULTS / f"spider-dev-{name}.jsonl" for name in names]
    report = make_report([str(run) for run in runs], reference="spider-dev-dbrag")
    md, html = write_report(report, tmp_path / "new" / "report.html")
    assert (md.name, html.name) == ("report.md", "report.html")
    page = html.read_text()
    assert elsewhere(page) == []
    found = parsed(page)
    assert not [tag for tag, _, _ in found.attributes if tag in ("script", "link", "img", "iframe")]
    policy = next(v for tag, name, v in found.attributes if (tag, name) == ("meta", "content"))
    assert policy.startswith("default-src 'none'")
    assert "url(" not in page
    assert "@import" not in page
    ids = [v for _, name, v in found.attributes if name == "id"]
    assert len(set(ids)) == len(ids)
    links = [v for tag, name, v in found.attributes if (tag, name) == ("a", "href")]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    # The figures of experiments/RESULTS.md.
    text = md.read_text()
    assert "| spider-dev-retrieval | 97.4 | 100.0 | 92.8 | 98.3 | 95.6 to 100.0 |" in text
    assert "| spider-dev-naive | EX | 391 | 73.4 | 57.5 | -15.9 | -20.7 to -10.7 |" in text
    assert json.loads(json.dumps(report.to_dict()))["schema"] == 1


def test_figures_are_files_beside_the_markdown(tmp_path: Path) -> None:
    paths = [sweep(tmp_path / f"k{k}", "relevant", k, k / 50) for k in (10, 50)]
    report = make_report(paths)
    md, html, svg = write_report(report, tmp_path / "report")
    assert svg.name == "report-figure-2a.svg"
    assert f"]({svg.name})" in md.read_text()
    assert "<svg" in html.read_text()
    assert svg.read_text().startswith("<svg ")
    printed = markdown_of(report.document)
    assert "](" not in printed  # without files there is nothing to link to
    assert isinstance(report.document.figures[0], Figure)


def test_names_are_data(tmp_path: Path) -> None:
    name = "<img src> | `a` **b**\n# c"
    path = write_run(tmp_path / "run", RANKED, "retrieval")
    report = make_report([f"{name}={path}"], title="<i>&")
    page, text = html_of(report.document), markdown_of(report.document)
    found = parsed(page)
    assert "img" not in {tag for tag, _, _ in found.attributes}
    assert "<i>&" in found.texts
    assert "<img" not in text
    assert "\n# c" not in text
    rules = [line for line in text.splitlines() if line.startswith("| &lt;img")]
    assert rules
    header = len(tables(report, "run")[0].header)
    assert rules[0].replace("\\|", "").count("|") == header + 1


def test_a_name_is_no_mark_of_markdown(tmp_path: Path) -> None:
    name = r"![x](http://a/b.png) \| *i* _u_ ~~d~~"
    path = write_run(tmp_path / "run", RANKED, "retrieval")
    told = r"!\[x](http://a/b.png) \\\| \*i\* \_u\_ \~\~d\~\~"
    text = markdown_of(make_report([f"{name}={path}"]).document)
    assert f"| {told} | retrieval |" in text
    assert "![" not in text
    published = Path(__file__).parents[3] / "experiments" / "results" / "spider-dev-dbrag.json"
    assert f"| {told} |" in summary_table({name: json.loads(published.read_text())})


def test_code_cannot_end_its_block(tmp_path: Path) -> None:
    command = "pip install a\n```\n# no title"
    missing = not_run(tmp_path / "dtr", "retrieval", "dtr", "gone", command)
    text = markdown_of(make_report([missing]).document)
    assert f"\n````sh\n{command}\n````\n" in text


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    report = make_report([write_run(tmp_path / "run", RANKED, "retrieval")])
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write the report"):
        write_report(report, tmp_path / "file" / "report")
    with pytest.raises(UsageError, match="no file name"):
        write_report(report, Path("/"))
