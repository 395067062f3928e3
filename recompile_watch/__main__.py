"""``python -m recompile_watch``."""

import sys

from recompile_watch.cli import main

if __name__ == "__main__":
    sys.exit(main())
