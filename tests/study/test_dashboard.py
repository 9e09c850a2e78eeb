"""The dashboard: the page of a study, with the kinds of failure."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import cbob
from cbob import Float


def fly(params: dict[str, Any]) -> float:
    if params["x"] > 0.5:
        raise ValueError("diverged")
    return float(params["x"])


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def test_one_command_serves_the_study_with_its_kinds_of_failure(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    cbob.minimize(fly, {"x": Float(0, 1)}, budget=6, storage=storage, name="flight", strategy="sobol", isolate=False)
    command = [sys.executable, "-m", "cbob.cli", "dashboard", "--storage", storage, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as board:
        try:
            assert board.stdout is not None
            found = re.search(r"http://\S+?(?=/dashboard/)", board.stdout.readline())
            assert found is not None
            assert "<title>" in fetched(f"{found[0]}/dashboard/")
            (study,) = json.loads(fetched(f"{found[0]}/api/studies"))["study_summaries"]
            assert study["study_name"] == "flight"
            detail = fetched(f"{found[0]}/api/studies/{study['study_id']}?after=0")
        finally:
            board.kill()
    kinds = [
        json.loads(attr["value"])["kind"]
        for trial in json.loads(detail)["trials"]
        for attr in trial["user_attrs"]
        if attr["key"] == "cbob:failure"
    ]
    assert kinds and set(kinds) == {"exception"}
    assert f"failed: exception | {len(kinds)} |" in json.loads(detail)["note"]["body"]
