"""`python -m duelist` is the same as `duelist`."""

from __future__ import annotations

from duelist.cli.main import main

if __name__ == "__main__":
    main()
