"""`bench` in the command line of cbob: light, because that line is built for every command, and campaigns import much."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """The command `bench`; what follows it is parsed by `cbob.bench.command` once it is called."""
    bench = commands.add_parser("bench", help="campaigns on benchmark problems, their tables and pictures", add_help=False)
    bench.add_argument("-h", "--help", action="store_true")
    bench.add_argument("arguments", nargs=argparse.REMAINDER)
    bench.set_defaults(command=_bench)


def _bench(options: argparse.Namespace) -> int:
    from cbob.bench.command import main

    return main(["--help"] if options.help else options.arguments)
