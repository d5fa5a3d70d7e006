"""A folder of data files: of its tables only those whose file changed are read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dbrag
from dbrag.index.store import open_index
from dbrag.models.testing import HashEmbedder
from tests.index.conftest import dump

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag.types import SourceReport


def index(folder: Path, directory: Path) -> SourceReport:
    arguments: Any = {"cache": str(folder.parent / "cache"), "embedder": HashEmbedder()}
    with dbrag.connect(folder, index=directory, **arguments) as database:
        (report,) = database.index().sources
    return report


def test_only_changed_files_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for i in range(6):
        (folder / f"t{i}.csv").write_text(f"id,word\n1,Kabul {i}\n2,panda {i}\n")
    first = index(folder, tmp_path / "index")
    assert (first.tables, first.tables_read) == (6, 6)
    assert index(folder, tmp_path / "index").status == "unchanged"

    (folder / "t2.csv").write_text("id,word\n1,Kabul 2\n2,red panda\n3,Bob\n")
    (folder / "t4.csv").unlink()
    (folder / "fresh.csv").write_text("city\nKabul\n")
    report = index(folder, tmp_path / "index")
    assert (report.tables, report.tables_read) == (6, 2)
    index(folder, tmp_path / "fresh")
    with open_index(tmp_path / "index") as grown, open_index(tmp_path / "fresh") as new:
        assert grown.catalog == new.catalog
        assert dump(grown) == dump(new)
