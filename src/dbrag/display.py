"""How results show themselves elsewhere: in notebooks, as Arrow and as pandas.

The mixins of ``types``. What a notebook shows is made by ``interfaces.notebook``, far above:
it is loaded when a notebook asks for it, and never otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbrag.arrow import arrow_table

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa


class Displayed:
    """Shows itself in Jupyter and IPython; elsewhere none of this is called."""

    __slots__ = ()

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        # IPython takes a class's own __repr__ before what it inherits, and dataclasses have one.
        cls._repr_pretty_ = Displayed._repr_pretty_  # type: ignore[method-assign]

    def _repr_html_(self) -> str:
        """For notebooks: HTML without scripts, every name and value escaped."""
        from dbrag.interfaces import notebook

        return notebook.html_of(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython's terminal, and where a notebook cannot show HTML."""
        from dbrag.interfaces import notebook

        for i, line in enumerate(notebook.lines_of(self)):
            if i:
                printer.break_()
            printer.text(line)


class Tabular(Displayed):
    """Has a result as its ``table``: Arrow, or None without one."""

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        """The whole result as Arrow ``[n_rows, n_columns]``, exactly; ``[0, 0]`` without one."""
        table = self.table  # type: ignore[attr-defined]
        return arrow_table((), ()) if table is None else table

    def to_pandas(self) -> pandas.DataFrame:
        """The whole result as a pandas frame ``[n_rows, n_columns]``; column names may repeat.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas  # noqa: F401 - pyarrow's own error does not say what to type
        except ImportError as error:
            from dbrag.errors import UsageError

            raise UsageError(
                "to_pandas() needs pandas", "pip install pandas, or use to_arrow()"
            ) from error
        return self.to_arrow().to_pandas()


class StatusReport(Displayed, dict[str, Any]):
    """What ``Database.status`` tells: a dictionary, ready for JSON, that shows itself."""
