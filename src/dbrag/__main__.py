"""``python -m dbrag``: the command line where no script was installed or found."""

from dbrag.interfaces.cli import main

if __name__ == "__main__":
    main()
