"""`python -m cbob.bench`: the subcommands of `cbob bench` on their own."""

from __future__ import annotations

import argparse
import sys

from cbob.bench.command import add_to
from cbob.errors import CbobError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cbob.bench", description="Campaigns on benchmark problems.")
    add_to(parser.add_subparsers(required=True, metavar="COMMAND"))
    options = parser.parse_args()
    try:
        return int(options.command(options))
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    except (CbobError, ImportError) as error:
        print(f"cbob: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
