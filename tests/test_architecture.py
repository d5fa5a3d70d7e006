"""The shape of the code: imports point one way, files and functions stay small."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dbrag

SRC = Path(dbrag.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

# A module may import what stands before it in this list, and its own part.
ORDER = [
    "textsafe",
    "cancel",
    "errors",
    "values",
    "logistic",
    "arrow",
    "display",
    "types",
    "options",
    "convert",
    "settings",
    "models",
    "sources",
    "execution",
    "catalog",
    "index",
    "retrieval",
    "reasoning",
    "scope",
    "freshness",
    "database",
    "dbrag",
    "demo_data",
    "demo_rows",
    "demo",
    "doctor",
    "evaluation",
    "interfaces",
    "__main__",
]
# Parts that stand beside the others: all that they may import.
ONLY = {
    "textsafe": set(),
    "cancel": set(),
    "errors": {"textsafe"},
    "values": set(),
    "logistic": set(),
    "arrow": {"values"},
    "display": {"errors", "arrow"},
    "types": {"values", "arrow", "display"},
    "options": {"errors"},
    "convert": set(),
    "settings": {"errors", "options", "convert"},
    "models": {"cancel", "errors", "types", "values", "settings"},
    "demo_data": set(),
    "demo_rows": {"demo_data"},
    "demo": {"errors", "types", "demo_data", "demo_rows"},
    # The package offers its names, and loads the façade only when it is asked for.
    "dbrag": {"errors", "types", "settings", "database"},
}
# The one way up, inside a function: results show themselves in notebooks, and their classes
# have to say so, because Jupyter asks the object. Who shows a result stands above all parts.
UPWARDS = {("display", "dbrag.interfaces.notebook")}
# Libraries that take long to import: `dbrag --help` must load none of them.
HEAVY = {
    "bm25s",
    "duckdb",
    "httpx",
    "lancedb",
    "numpy",
    "onnxruntime",
    "pandas",
    "platformdirs",
    "pyarrow",
    "pydantic",
    "pydantic_ai",
    "rich",
    "sqlalchemy",
    "sqlglot",
    "sqlite3",
    "tokenizers",
    "xllamacpp",
}


def module_name(path: Path) -> str:
    parts = list(path.relative_to(SRC.parent).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def part(module: str) -> str:
    """``index`` for ``dbrag.index.build``."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else "dbrag"


MODULES = {module_name(path) for path in FILES}


def imported(tree: ast.AST) -> list[tuple[int, str]]:
    """Every module imported anywhere in a file, also inside functions: (line, name)."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they point"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.append((node.lineno, full if full in MODULES else str(node.module)))
    return found


def typing_only(tree: ast.AST) -> set[int]:
    """Lines under ``if TYPE_CHECKING``."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for child in node.body:
                lines |= set(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    return lines


def inside_functions(tree: ast.AST) -> set[int]:
    """Lines that run only when a function is called."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def test_every_part_has_its_place() -> None:
    assert {part(module) for module in MODULES} <= set(ORDER)


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_point_one_way(path: Path) -> None:
    own = part(module_name(path))
    tree = parse(path)
    wrong = []
    for line, name in imported(tree):
        if name.split(".")[0] != "dbrag":
            continue
        target = part(name)
        allowed = ONLY.get(own, set(ORDER[: ORDER.index(own)]) - {"demo", "demo_data", "demo_rows"})
        if own == "interfaces":
            allowed = set(ORDER)
        if (own, name) in UPWARDS and line in inside_functions(tree):
            continue
        if target != own and target not in allowed:
            wrong.append(f"line {line}: {own} imports {name}")
    assert not wrong


OWN = ("dbrag.values", "dbrag.arrow", "dbrag.display", "dbrag.textsafe")  # parametrised themselves


@pytest.mark.parametrize("name", ["types", "values", "arrow", "display", "textsafe", "errors"])
def test_types_values_and_errors_load_only_the_standard_library(name: str) -> None:
    tree = parse(SRC / f"{name}.py")
    foreign = [
        module
        for line, module in imported(tree)
        if line not in inside_functions(tree) | typing_only(tree)
        and module.split(".")[0] not in sys.stdlib_module_names
        and module not in OWN
    ]
    assert not foreign


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_files_and_functions_are_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_FILE_LINES
    long = [
        f"{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert not long


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_public_names_are_documented(path: Path) -> None:
    tree = parse(path)
    assert ast.get_docstring(tree), "the module has no docstring"
    bare = []
    for node in tree.body:
        members = node.body if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.ClassDef) and node.name.startswith("_"):
            members = []
        for item in (node, *members):
            if (
                isinstance(item, ast.ClassDef | ast.FunctionDef)
                and not item.name.startswith("_")
                and not ast.get_docstring(item)
            ):
                bare.append(f"line {item.lineno}: {item.name}")
    assert not bare


def test_exported_names_are_frozen() -> None:
    assert sorted(dbrag.__all__) == [
        "Answer",
        "Candidate",
        "Database",
        "DbragError",
        "SearchResult",
        "Settings",
        "TableRef",
        "__version__",
        "connect",
    ]
    for name in dbrag.__all__:
        assert getattr(dbrag, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dbrag.nothing  # noqa: B018


@pytest.mark.parametrize(
    "code",
    [
        "import dbrag",
        "from dbrag.interfaces.cli import main; assert main(['--help']) == 0",
        "from dbrag.interfaces.cli import main; assert main(['--version']) == 0",
        "from dbrag.interfaces.cli import main; assert main(['ask', '--help']) == 0",
    ],
)
def test_help_loads_nothing_heavy(code: str) -> None:
    script = f"{code}\nimport sys\nprint(*sys.modules, sep='\\n', file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert not loaded & HEAVY
    # What is left is click and the standard library (and what site packages preload).
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    known = {name.split(".")[0] for name in bare.stdout.split()}
    assert loaded - known - sys.stdlib_module_names <= {"click", "dbrag", "colorama"}


BANNED = {
    "asyncio.wait_for": "before Python 3.12 it swallows a cancellation (CPython gh-86296): "
    "asyncio.timeout",
    "np.load": "two threads that read at once can fail (CPython gh-106905): dbrag.index.arrays",
}


@pytest.mark.parametrize("call", BANNED)
def test_calls_with_traps_stand_in_one_place_at_most(call: str) -> None:
    allowed = {"np.load": {SRC / "index/arrays.py"}}.get(call, set())
    found = [
        f"{path.relative_to(SRC)}:{node.lineno}"
        for path in FILES
        if path not in allowed
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == call
    ]
    assert not found, BANNED[call]
