"""``dbrag completion``: the script by which a shell completes ``dbrag``."""

from __future__ import annotations

import click

from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.complete import VARIABLE
from dbrag.interfaces.cli.options import Run, common_options, pass_run

_BASH = "~/.local/share/bash-completion/completions"
INSTALL = {
    "bash": f"mkdir -p {_BASH} && dbrag completion -q bash > {_BASH}/dbrag",
    "zsh": "dbrag completion -q zsh > ~/.dbrag.zsh && echo 'source ~/.dbrag.zsh' >> ~/.zshrc",
    "fish": "dbrag completion -q fish > ~/.config/fish/completions/dbrag.fish",
}
"""Shell → the command that installs its script."""
_AFTERWARDS = {
    "bash": "needs the package bash-completion; without it: "
    "echo 'source <(dbrag completion -q bash)' >> ~/.bashrc",
    "zsh": "~/.zshrc has to call compinit before: autoload -U compinit && compinit",
    "fish": "fish finds it there by itself",
}


@click.command(short_help="Print the script that completes dbrag in a shell.")
@click.argument("shell", type=click.Choice(tuple(INSTALL)))
@common_options
@pass_run
def completion(run: Run, shell: str) -> int:
    """Print the script that completes commands, flags, paths and table names in SHELL."""
    text = script(shell, click.get_current_context().find_root().command)
    if run.json:
        from dbrag.types import SCHEMA_VERSION

        found = {"shell": shell, "script": text, "install": INSTALL[shell]}
        output.emit_json({"schema": SCHEMA_VERSION, **found})
        return 0
    output.emit(text.rstrip("\n"))
    if not run.quiet:
        output.note(f"to install it: {INSTALL[shell]}")
        output.note(f"  ({_AFTERWARDS[shell]}); then open a new shell")
    return 0


def script(shell: str, command: click.Command) -> str:
    """The script, which asks ``dbrag`` itself for what fits."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # click knows all three
        raise click.UsageError(f"no completion for {shell!r}")
    made = kind(command, {}, "dbrag", VARIABLE)
    return made.source_template % made.source_vars()
