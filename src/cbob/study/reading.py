"""A stored study as it is looked at: by `cbob status`, `best`, `show` and `export`, while it runs or later."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbob.constraints import Constraint, as_constraints
from cbob.errors import StorageError, StudyError, listed
from cbob.study.liveness import born, host
from cbob.study.names import BUDGET, DEFINITION, DRIVER
from cbob.study.records import Record
from cbob.study.storage import Patience, close_storage, open_storage, shown_url
from cbob.study.tally import Standing, Tally

if TYPE_CHECKING:
    import optuna

__all__ = ["Stored", "find_study_file", "read_study"]


@dataclass(frozen=True)
class Stored:
    """One study as its storage has it."""

    name: str
    storage: str
    direction: str
    constraints: tuple[Constraint, ...]
    budget: int | None
    records: list[Record]
    standing: Standing
    drivers: int  # that are known or believed to live
    study: optuna.Study

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without the trials."""
        return {
            "name": self.name,
            "storage": shown_url(self.storage),
            "direction": self.direction,
            "constraints": [str(constraint) for constraint in self.constraints],
            "budget": self.budget,
            "drivers": self.drivers,
            **self.standing.to_dict(),
        }

    def trial(self, number: int) -> Record:
        """The record of one trial."""
        for record in self.records:
            if record.number == number:
                return record
        last = f"0 .. {self.records[-1].number}" if self.records else "none yet"
        raise StudyError(f"the study {self.name!r} has no trial {number}; there are {last}")


def read_study(storage: str, name: str | None) -> Stored:
    """The study of this name, or the only one that there is."""
    opened = open_storage(storage, writing=False)
    try:
        return Patience(storage, seconds=0.0)(lambda: _read(opened, storage, name), "read the study")
    finally:
        close_storage(opened)


def find_study_file(folder: Path) -> Path:
    """The only study file in a folder."""
    found = [file for file in sorted(folder.glob("*.toml")) if "[space" in file.read_text(encoding="utf-8", errors="replace")]
    if len(found) == 1:
        return found[0]
    there = f"there are several: {listed(file.name for file in found)}" if found else "there is none in this folder"
    raise StudyError(f"which study? Name its file, or give --storage and --name; {there}")


def _read(opened: Any, storage: str, name: str | None) -> Stored:
    import optuna

    names = sorted(optuna.get_all_study_names(opened))
    if name is None and len(names) == 1:
        name = names[0]
    if name is None or name not in names:
        wanted = "several studies" if name is None else f"no study {name!r}"
        raise StorageError(f"{shown_url(storage)} holds {wanted if names else 'no study yet'}; there are {listed(names)}")
    study = optuna.load_study(study_name=name, storage=opened)
    attrs = study.user_attrs
    definition = attrs.get(DEFINITION)
    if definition is None:
        raise StudyError(
            f"the study {name!r} in {shown_url(storage)} was not begun by cbob; look at it with Optuna's own tools"
        )
    constraints = as_constraints(definition["constraints"])
    tally = Tally(constraints, definition["direction"])
    records = tally.records(study.get_trials(deepcopy=False))
    cards = {k: card for k, card in opened.get_study_system_attrs(study._study_id).items() if k.startswith(DRIVER)}
    return Stored(
        name=name,
        storage=storage,
        direction=definition["direction"],
        constraints=constraints,
        budget=attrs.get(BUDGET),
        records=records,
        standing=tally.standing(records),
        drivers=sum(map(_may_live, cards.values())),
        study=study,
    )


def _may_live(card: dict[str, Any]) -> bool:
    """Not ended, and its process is there if it is one of this host."""
    return not card["ended"] and (card["host"] != host() or born(int(card["pid"])) == card["born"])
