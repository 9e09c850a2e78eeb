"""`python -m cbob.bench`: the subcommands of `cbob bench` on their own."""

import sys

from cbob.bench.command import main

if __name__ == "__main__":
    sys.exit(main(prog="python -m cbob.bench"))
