"""Study files: what they mean, and what is said of those that mean nothing."""

from pathlib import Path
from typing import Any

import pytest

from cbob.constraints import Constraint
from cbob.errors import StudyError
from cbob.space import Categorical, Float, Int, Space
from cbob.study.config import StudyFile, beside, read_study_file
from cbob.study.limits import Limits

WHOLE = """
name = "lander"
budget = 100
direction = "maximize"
constraints = ["fuel <= 40"]
storage = "sqlite:///lander.db"
[evaluate]
function = "lander:land"
[limits]
seconds = 30
memory = "2GiB"
[space]
thrust = {type = "float", low = 0.0, high = 2.0}
stages = {type = "int", low = 1, high = 15, log = true}
fuel_kind = {type = "categorical", choices = ["a", "b"]}
"""
LEAST = '[evaluate]\nfunction = "a:b"\n[space]\nx = {type = "float", low = 0, high = 1}\n'


def read(folder: Path, text: str, **flags: Any) -> StudyFile:
    file = folder / "study.toml"
    file.write_text(text)
    return read_study_file(file, flags)


def test_every_key_arrives_in_the_plan(tmp_path: Path) -> None:
    plan = read(tmp_path, WHOLE).plan
    assert (plan.name, plan.budget, plan.direction, plan.target) == ("lander", 100, "maximize", "lander:land")
    assert plan.constraints == (Constraint("fuel", 40.0),)
    assert plan.limits == Limits(seconds=30, memory=2 * 2**30)
    assert plan.space == Space(
        {"thrust": Float(0.0, 2.0), "stages": Int(1, 15, log=True), "fuel_kind": Categorical(["a", "b"])}
    )
    assert plan.folder == tmp_path.resolve()


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    file = read(tmp_path, LEAST)
    assert (file.plan.name, file.plan.budget, file.plan.workers, file.plan.seed) == ("study", 100, 1, 0)
    assert file.storage == f"sqlite:///{tmp_path.resolve()}/study.db"


def test_a_relative_database_lies_beside_the_file_that_names_it(tmp_path: Path) -> None:
    assert read(tmp_path, WHOLE).storage == f"sqlite:///{tmp_path.resolve()}/lander.db"
    for url in ("sqlite:////there/x.db", "postgresql://user@host/base", "sqlite:///:memory:"):
        assert beside(url, tmp_path) == url


def test_flags_go_before_keys_of_the_same_name(tmp_path: Path) -> None:
    file = read(tmp_path, WHOLE, budget=7, workers=3, seed=5, name="other", storage="sqlite:///here.db")
    assert (file.plan.budget, file.plan.workers, file.plan.seed, file.plan.name) == (7, 3, 5, "other")
    assert file.storage == "sqlite:///here.db"


def test_a_command_is_a_list_of_texts(tmp_path: Path) -> None:
    text = LEAST.replace('function = "a:b"', 'command = ["./simulate", "--x={x}"]')
    assert read(tmp_path, text).plan.target == ("./simulate", "--x={x}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "is not TOML: Invalid value .at end of document."),
        (WHOLE[: WHOLE.index("[space]")], r"has no \[space\] table"),
        ("name = 'x'", r"has no \[evaluate\] table"),
        ("budgt = 3\n" + LEAST, "unknown key 'budgt' in the study file; did you mean 'budget'"),
        ("budget = '3'\n" + LEAST, "'budget' in the study file must be a whole number, not '3' .str."),
        ("budget = true\n" + LEAST, "'budget' in the study file must be a whole number, not True .bool."),
        ("budget = 0\n" + LEAST, "budget must be a whole number from 1, not 0 .int."),
        ("workers = -1\n" + LEAST, "workers must be a whole number from 1, not -1"),
        ("direction = 'up'\n" + LEAST, "direction must be 'minimize' or 'maximize', not 'up'"),
        ("constraints = ['fuel < 40']\n" + LEAST, "'fuel < 40' has '<'"),
        ("constraints = 'fuel <= 40'\n" + LEAST, "'constraints' in the study file must be a list of texts"),
        ("strategy = 3\n" + LEAST, "'strategy' in the study file must be a text"),
        (LEAST.replace("function", "functoin"), "unknown key 'functoin' in .evaluate.; did you mean 'function'"),
        (LEAST.replace('"a:b"', "3"), "'function' in .evaluate. must be a text, not 3"),
        (LEAST.replace('function = "a:b"', ""), r"\[evaluate\] needs one of .* not neither"),
        (LEAST.replace('"a:b"', '"a:b"\ncommand = ["x"]'), r"\[evaluate\] needs one of .* not both"),
        (LEAST + "[limits]\nsecond = 3", "unknown key 'second' in .limits.; did you mean 'seconds'"),
        (LEAST + "[limits]\nmemory = 'much'", "the limit of memory must look like"),
        (LEAST + "[limits]\nseconds = -1", "the limit in seconds must be positive, not -1"),
        (LEAST + "y = 3\n", r"\[space\] y must be a table like"),
        (LEAST + "y = {type = 'flaot', low = 0, high = 1}\n", "parameter 'y' must be written"),
        (LEAST + "y = {type = 'int', low = 3, high = 1}\n", "parameter 'y': Int needs low < high"),
        ("[evaluate]\nfunction = 'a:b'\n[space]\n", "a Space needs at least one parameter"),
    ],
)
def test_what_is_wrong_is_named_with_the_file(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(StudyError, match=words) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path}/study.toml: ")


def test_a_file_that_cannot_be_read_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"nothing\.toml: cannot be read: No such file"):
        read_study_file(tmp_path / "nothing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match=r"binary\.toml: is not text in UTF-8"):
        read_study_file(tmp_path / "binary.toml")
