"""Plays the scenarios and compares the records."""

import contextlib
import difflib
import importlib
import pathlib
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from brokers import BROKERS
from player import Player, flat
from record import INDENT, shown
from scenario import Scenario, Step

WORKERS = 24
FOLDER = pathlib.Path(__file__).parent / "scenarios"
AFTERWARDS = Step("afterwards")


@dataclass(frozen=True)
class Record:
    """What one broker did: the lines of each step, and whether all came that was waited for."""

    entries: list[list[str]]
    vain: bool


def names() -> list[str]:
    """The files of scenarios."""
    return sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


def load(selected: list[str] = ()) -> dict[str, Scenario]:
    """The scenarios of these files, or of all, by `file/id`."""
    found = {}
    for name in selected or names():
        if name not in names():
            raise SystemExit(f"there is no scenarios/{name}.py")
        for scenario in importlib.import_module(f"scenarios.{name}").SCENARIOS:
            assert f"{name}/{scenario.id}" not in found, f"two scenarios {name}/{scenario.id}"
            found[f"{name}/{scenario.id}"] = scenario
    ids = [scenario.id for scenario in found.values()]
    assert len(ids) == len(set(ids)), "an id names queues too: it may be used only once"
    return found


@contextlib.contextmanager
def started(kinds):
    """The brokers of these kinds, fresh, for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="compare-", ignore_cleanup_errors=True) as folder:
        brokers = []
        try:
            for kind in kinds:
                own = pathlib.Path(folder, kind)
                own.mkdir()
                brokers.append(BROKERS[kind](own))
                brokers[-1].start()
            yield brokers
        finally:
            for broker in brokers:
                broker.stop()


def play(scenarios: dict[str, Scenario], brokers, as_it_came=False) -> dict[str, dict]:
    """Records by scenario and broker. Scenarios run beside one another, unless they must not."""
    def one(scenario, broker):
        player = Player(scenario, broker, as_it_came)
        return Record(player.play(), player.vain)

    records = {id: {} for id in scenarios}

    def all_of(some):
        jobs = [(id, broker, pool.submit(one, scenario, broker))
                for id, scenario in some for broker in brokers]
        for id, broker, job in jobs:
            records[id][broker.kind] = job.result()

    with ThreadPoolExecutor(WORKERS) as pool:
        all_of((id, scenario) for id, scenario in scenarios.items() if not scenario.alone)
        for id, scenario in scenarios.items():
            if scenario.alone:
                all_of([(id, scenario)])
    return records


def transcript(scenario: Scenario, record: Record) -> str:
    """One broker's record, for reading."""
    out = []
    for step, lines in zip([*flat(scenario.steps), AFTERWARDS], record.entries, strict=True):
        if step is not AFTERWARDS or lines:
            out += [shown(step), *(INDENT + line for line in lines)]
    return "\n".join(out)


def report(scenario: Scenario, old: Record, new: Record) -> str:
    """Where the records differ and no step says so, or do not differ as one says; else empty."""
    out, failed = [], False
    for step, was, now in zip([*flat(scenario.steps), AFTERWARDS], old.entries, new.entries,
                              strict=True):
        if step.only:
            continue
        both = list(difflib.ndiff(was, now))
        both = [line for line in both if not line.startswith("?")]
        found = changes(both)
        due = changes(step.difference.lines) if step.difference else ([], [])
        if found == due:
            out.append(shown(step) + ("    (differs as it should)" if any(found) else ""))
            continue
        failed = True
        out += [shown(step), *both]
        if step.difference:
            out += [f"# due was another difference: {step.difference.because}",
                    *(f"#   {line}" for line in step.difference.lines)]
    if not failed:
        return ""
    while not out[-1].startswith(("-", "+", "#", " ")):
        out.pop()
    return "\n".join(["--- RabbitMQ", "+++ Leveret", *out])


def changes(lines) -> tuple[list[str], list[str]]:
    """The lines taken away and those added, without their indentation."""
    return tuple([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
