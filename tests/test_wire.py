"""What travels between a run and its driver: it arrives as it was, and what somebody else put there does nothing."""

import dataclasses
import json
import os
import pickle
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

import eventlake
from altered_segments import NO_SEGMENTS
from conftest import InProcess, Lake, SetClock, track
from counted import counts
from eventlake.archive.whole import WholeArchive
from eventlake.audit.repair import repair
from eventlake.audit.verify import verify
from eventlake.aws.session import AwsOptions
from eventlake.errors import EventLakeError, InternalError, NoSpaceError, TransientError
from eventlake.lake import packing
from eventlake.lake.ids import Share, route_hash
from eventlake.lake.layout import DatePartition
from eventlake.lake.parquet import DataFile
from eventlake.lake.segment import SegmentDialect
from eventlake.lake.segments import NONE, Segment, packed
from eventlake.lake.staging import IdSegment
from eventlake.runners import wire
from eventlake.runners.mailbox import Mailbox
from eventlake.runners.wire import Failure, Greeting, Request, Step
from eventlake.schema.evolve import Sighting
from eventlake.schema.tallies import Tally
from eventlake.schema.types import Seen
from eventlake.storage.base import Storage
from eventlake.storage.local import LocalStorage
from eventlake.storage.s3 import S3Options, S3Storage
from eventlake.sync import jobs
from eventlake.sync.dedupe import combine
from eventlake.tasks import answers
from eventlake.tasks.counts import Count
from eventlake.tasks.dedupe import DedupeContext, DedupeResult
from eventlake.tasks.examine import (
    Difference,
    ExamineContext,
    FileSeen,
    IndexSeen,
    Messages,
    Nameless,
    Partition,
    Suspect,
)
from eventlake.tasks.id_files import NewIds
from eventlake.tasks.publish import PublishContext, Published, TableShare
from eventlake.tasks.registry import STEPS, twice
from eventlake.tasks.reindex import ReindexContext
from eventlake.tasks.scope import Mode
from eventlake.tasks.staged import FileCount, News, RawFile, StageContext, StageResult

TWICE = Request(STEPS["twice"], None, [1, 2, 3])


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    return Mailbox(LocalStorage(str(tmp_path)), "segment-stage/1", STEPS)


def put(tmp_path: Path, name: str, content: bytes) -> None:
    """What somebody else writes to the folder of a session."""
    (tmp_path / "segment-stage" / "1").mkdir(parents=True, exist_ok=True)
    (tmp_path / "segment-stage" / "1" / name).write_bytes(content)


# What is sent arrives


def test_what_is_asked_arrives(mailbox: Mailbox) -> None:
    assert mailbox.request(1) is None
    assert mailbox.result(1, TWICE) is None
    assert mailbox.greeting() is None
    assert mailbox.progress(1) == 0
    mailbox.ask(1, TWICE)
    assert mailbox.request(1) == TWICE
    mailbox.tell_progress(1, 2)
    assert mailbox.progress(1) == 2
    mailbox.answer(1, [2, 4, 6])
    assert mailbox.result(1, TWICE) == [2, 4, 6]
    mailbox.answer(2, Failure("NoSpaceError", "full", "make room"))
    assert mailbox.result(2, TWICE) == Failure("NoSpaceError", "full", "make room")
    mailbox.greet(Greeting(16, "3.5.6-amzn-1"))
    assert mailbox.greeting() == Greeting(16, "3.5.6-amzn-1")


class ThroughMailbox(InProcess):
    """Carries out tasks here, but lets them and their results travel."""

    def __init__(self, mailbox: Callable[[], Mailbox]) -> None:
        self._mailbox = mailbox
        self.asked: set[str] = set()

    def run(
        self,
        function: Callable[[Any, Any], Any],
        context: Any,
        tasks: Sequence[Any],
        progress: Callable[[int], None] | None = None,
    ) -> list[Any]:
        mailbox = self._mailbox()
        request = Request(STEPS[function.__name__], context, tasks)
        mailbox.ask(1, request)
        asked = mailbox.request(1)
        assert asked
        assert asked.context == context
        self.asked.add(asked.step.name)
        mailbox.answer(1, [asked.step.function(asked.context, task) for task in asked.tasks])
        results = mailbox.result(1, request)
        assert isinstance(results, list)
        return results


def test_every_step_travels_with_all_that_goes_in_and_comes_out(tmp_path: Path) -> None:
    runner = ThroughMailbox(lambda: Mailbox(lake.place.storage, "segment-stage/1", STEPS))
    lake = Lake(tmp_path / "workspace", runner, clock=SetClock())
    lake.sync_of(track("A", "m1", properties={"n": 1, "text": "x"}), track("A", "m1"), track("B", "m2"), b"broken")
    lake.sync_of(track("A", "m3", properties={"n": "no number"}))
    assert lake.query("select properties_n, _rescued_data from web.track_a where message_id = 'm3'") == [
        {"properties_n": None, "_rescued_data": '{"/properties/n":{"value":"no number","reason":"not a bigint"}}'}
    ]
    # So many that they are read as columns: NumPy counts there, and its numbers must not travel.
    lake.sync_of(*(track("C", f"c{number}", properties={"n": number}) for number in range(1100)))
    lake.run(jobs.replay(lake.connection, None, None))
    lake.place.storage.delete(lake.place.ledger.index_files("src1")[0].path)
    assert lake.sync()[0]["reindexed"]["messages"] == 2
    (file, *_) = [file for file in lake.place.ledger.data_files("src1") if file.table_key == "track_b"]
    lake.place.storage.delete(file.path)
    found = verify(lake.workspace, lake.connection, runner)
    assert "m2" in " ".join(finding.detail for finding in found)
    repair(lake.workspace, lake.connection, found, runner)
    assert verify(lake.workspace, lake.connection, runner) == []
    assert runner.asked == STEPS.keys() - {"twice"}


def test_no_credentials_and_no_role_travel_with_the_storage(tmp_path: Path) -> None:
    options = S3Options("http://x", aws=AwsOptions("eu-west-1", "arn:aws:iam::123456789012:role/job", "external"))
    archive = WholeArchive(S3Storage("s3://archive", options), (S3Storage("s3://theirs/logs", options),))
    context = ExamineContext(S3Storage("s3://bucket/lake", options), archive, DIALECT)
    content = wire.encoded_request(Request(STEPS["examine_raw"], context, [["segment-logs/a"]]))
    assert json.loads(content)["context"] == {
        "storage": "s3://bucket/lake",
        "archive": {"own": "s3://archive", "annexes": ["s3://theirs/logs"]},
        "dialect": json.loads(wire.encoded(DIALECT)),
    }
    there = [
        S3Storage(root, S3Options("http://x")) for root in ("s3://bucket/lake", "s3://archive", "s3://theirs/logs")
    ]  # the driver's own
    decoded = wire.decoded_request(content, STEPS, there, "request-1").context
    assert [decoded.storage, decoded.archive.own, *decoded.archive.annexes] == there


def test_a_request_for_another_lake_is_refused(mailbox: Mailbox, tmp_path: Path) -> None:
    """The driver works for the lake that it was submitted for, whatever a request says."""
    other = LocalStorage(str(tmp_path / "other"))
    Mailbox(LocalStorage(str(tmp_path)), "segment-stage/1", STEPS).ask(
        1, Request(STEPS["examine_raw"], ExamineContext(other, WholeArchive(other), DIALECT), [["a"]])
    )
    with pytest.raises(InternalError, match="the lake is in"):
        mailbox.request(1)


def test_what_is_no_plain_data_cannot_be_sent(mailbox: Mailbox) -> None:
    for value in (np.int64(1), np.uint64(1), object()):
        with pytest.raises(TypeError, match="cannot travel"):
            mailbox.answer(1, [value])


def test_no_module_reads_anything_that_could_be_code() -> None:
    """Neither pickles nor what builds on them. Spark has its own between its processes; no file of those is read."""
    reads = re.compile(
        r"^\s*(import|from) (pickle|marshal|shelve|dill|cloudpickle|joblib)\b|allow_pickle", re.MULTILINE
    )
    modules = list(Path(eventlake.__file__).parent.rglob("*.py"))
    assert len(modules) > 100
    assert [module.name for module in modules if reads.search(module.read_text())] == []


# What somebody else put there


class Evil:
    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.proof),)


class Dtype:
    """A dtype with a state of the writer's choice: NumPy reads its fields from whatever address that gives."""

    def __reduce__(self) -> tuple[Any, ...]:
        state = (3, "|", None, ("f",), {"f": (np.dtype("O"), 1 << 40)}, 8, 8, 0)
        return np.dtype, ("V8", False, True), state


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "a pickle of a dtype": pickle.dumps([Dtype()]),
    "an old pickle": pickle.dumps([1, 2, 3], protocol=0),
    "truncated": b'{"results":[2,4',
    "not UTF-8": b'{"results":["\xff"]}',
    "lone surrogate": b'{"results":["\\ud800"]}',
    "deep": b'{"results":' + b"[" * 1_000_000,
    "endless number": b'{"results":[' + b"9" * 1_000_000 + b",4,6]}",
    "not an object": b"[2,4,6]",
    "another field": b'{"results":[2,4,6],"__class__":"os.system"}',
    "neither results nor failure": b"{}",
    "another type": b'{"results":["2","4","6"]}',
    "fractions": b'{"results":[2.0,4.0,6.0]}',
    "null": b'{"results":null}',
    "too few": b'{"results":[2,4]}',
    "too many": b'{"results":[2,4,6,8]}',
    "a lie": b'{"results":[2,4,7]}',
    "a failure of no kind": b'{"failure":{"kind":1,"problem":"p","fix":"f"}}',
    "a failure with more": b'{"failure":{"kind":"BusyError","problem":"p","fix":"f","code":"x"}}',
}


def refusal(error: InternalError, name: str) -> None:
    assert f"segment-stage/1/{name}" in error.problem
    assert len(error.problem) < 1000
    assert "who else may write to the lake's staging folder" in error.fix


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_result_that_is_not_one_is_refused(mailbox: Mailbox, tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "result-1", content)
    with pytest.raises(InternalError) as caught:
        mailbox.result(1, TWICE)
    refusal(caught.value, "result-1")


def test_a_pickle_is_not_loaded(mailbox: Mailbox, tmp_path: Path) -> None:
    evil = pickle.dumps([Evil(tmp_path / "proof")])
    for name in ("result-1", "request-1", "hello", "progress-1"):
        put(tmp_path, name, evil)
    for read in (lambda: mailbox.result(1, TWICE), lambda: mailbox.request(1), mailbox.greeting):
        with pytest.raises(InternalError):
            read()
    with pytest.raises(InternalError):
        mailbox.progress(1)
    assert not (tmp_path / "proof").exists()
    pickle.loads(evil)  # it is a real one
    assert (tmp_path / "proof").exists()


def test_a_huge_file_is_not_read(tmp_path: Path, mailbox: Mailbox) -> None:
    """A hole of a terabyte takes no room on the disk; read as it is, it would take all of the memory."""
    for name in ("result-1", "request-1", "hello", "progress-1"):
        put(tmp_path, name, b"{")
        os.truncate(tmp_path / "segment-stage" / "1" / name, 1 << 40)
    few = Request(TWICE.step, None, [1])
    with pytest.raises(InternalError, match="more than 83,886,080 bytes") as caught:
        mailbox.result(1, few)
    refusal(caught.value, "result-1")
    for read in (mailbox.greeting, lambda: mailbox.progress(1)):
        with pytest.raises(InternalError, match="more than 100,000 bytes"):
            read()


@pytest.mark.parametrize(
    "content",
    [
        b'{"step":"system","context":null,"tasks":[1]}',
        b'{"step":"__import__","context":null,"tasks":[1]}',
        b'{"step":"eventlake.tasks.stage.stage","context":null,"tasks":[1]}',
        b'{"step":"twice","context":1,"tasks":[1]}',
        b'{"step":"twice","context":null,"tasks":["1"]}',
        b'{"step":"twice","context":null}',
        b'{"step":"twice","context":null,"tasks":[1],"more":1}',
        pickle.dumps(("os.system", None, ["true"])),
    ],
)
def test_a_request_that_is_not_one_is_refused(mailbox: Mailbox, tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "request-1", content)
    with pytest.raises(InternalError) as caught:
        mailbox.request(1)
    refusal(caught.value, "request-1")


@pytest.mark.parametrize(
    "content",
    [
        b'{"parallelism":0,"spark":"4.3.0"}',
        b'{"parallelism":1000000000,"spark":"4.3.0"}',
        b'{"parallelism":"16","spark":"4.3.0"}',
        b'{"parallelism":16,"spark":"\\u001b[2J"}',
        b'{"parallelism":16}',
    ],
)
def test_a_greeting_that_is_not_one_is_refused(mailbox: Mailbox, tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "hello", content)
    with pytest.raises(InternalError) as caught:
        mailbox.greeting()
    refusal(caught.value, "hello")


@pytest.mark.parametrize(
    ("kind", "becomes"),
    [("NoSpaceError", NoSpaceError), ("of_system", TransientError), ("errno", TransientError), ("x", TransientError)],
)
def test_a_failure_becomes_an_error_of_ours_and_nothing_else(kind: str, becomes: type[EventLakeError]) -> None:
    error = Failure(kind, "problem", "fix").error()
    assert type(error) is becomes
    assert (error.problem, error.fix) == ("problem", "fix")


# Results that are of the right type, and lie

RUN = "1763251200000000000"
HERE = f"segment-stage/{RUN}"
HEX = "0123456789abcdef" * 2
STORAGE: Storage = LocalStorage("/lake")
DIALECT = SegmentDialect("src1", "web")
RAW = [
    RawFile(0, "segment-logs/src1/1763164800000/a.gz", 10, "e1"),
    RawFile(1, "segment-logs/src1/1763164800000/b.gz", 10, "e2"),
]
LARGE = 1 << 63


def staged(**changes: Any) -> StageResult:
    whole = StageResult(
        files=[FileCount(RAW[0], 3, 3, 0, 0, 5, 6, HEX), FileCount(RAW[1], error="broken")],
        staged=f"{HERE}/staged-{HEX}",
        tables=packed({"track_a": [Segment(0, 3, 0, 10, 20, 0)]}),
        news={"track_a": News({"user_id": Sighting(Seen.TEXT, 3, "/userId")})},
        id_segments=[IdSegment(f"{HERE}/staged-{HEX}", 10, 3)],
        quarantine=f"{HERE}/quarantine-{HEX}.parquet",
        refused_tables=Counter(track_b=2),
    )
    return dataclasses.replace(whole, **changes)


OUTSIDE = [
    "segment-data/commits/source=src1/1.json",
    f"segment-stage/1/staged-{HEX}",
    f"{HERE}/../2/staged-{HEX}",
    f"{HERE}/more/staged-{HEX}",
    f"/{HERE}/staged-{HEX}",
    f"{HERE}/staged-{HEX}\n",
    f"{HERE}/",
    f"{HERE}/..",
    "",
]


def test_what_stage_tasks_really_return_is_accepted() -> None:
    context = StageContext(HERE, STORAGE, WholeArchive(STORAGE), DIALECT, {}, 10, 10)
    assert answers.stage(context, RAW, staged()) is None
    assert answers.stage(context, RAW, staged(quarantine=None, tables=packed({}), news={}, id_segments=[])) is None


ONE = Segment(0, 1, 0, 1, 1, 0)
STAGE_LIES = [
    *(staged(quarantine=path) for path in OUTSIDE),
    *(staged(id_segments=[IdSegment(path, 0, 1)]) for path in OUTSIDE),
    *(staged(staged=path) for path in OUTSIDE),
    staged(files=[FileCount(RAW[0])]),
    staged(files=[FileCount(RAW[0]), FileCount(RAW[0])]),
    staged(files=[FileCount(RAW[0]), FileCount(RAW[1]._replace(path="segment-logs/src2/1/b.gz"))]),
    staged(files=[FileCount(RAW[0]), FileCount(RAW[1]._replace(number=7))]),
    staged(files=[FileCount(RAW[0], lines=LARGE), FileCount(RAW[1])]),
    staged(files=[FileCount(RAW[0], staged=-1), FileCount(RAW[1])]),
    staged(files=[FileCount(RAW[0], quarantined=-1), FileCount(RAW[1])]),
    staged(files=[FileCount(RAW[0], first_received=LARGE), FileCount(RAW[1])]),
    staged(files=[FileCount(RAW[0], last_received=-LARGE), FileCount(RAW[1])]),
    staged(files=[FileCount(RAW[0], digest="x" * 32), FileCount(RAW[1])]),
    *(staged(tables=packed({name: [ONE]}), news={}) for name in ("../../etc", "", "a" * 201)),
    *(staged(tables=content) for content in NO_SEGMENTS),
    staged(refused_tables=Counter({"\x1b[2J": 1})),
    staged(refused_tables=Counter(track_b=-1)),
    staged(files=[FileCount(RAW[0], blocked=-1), FileCount(RAW[1])]),
    staged(news={"track_a": News(hours={LARGE})}),
    staged(news={"track_a": News({"b": Sighting(Seen.TEXT, 1, "/a", (Tally(Seen.TEXT, -1, "x"),))})}),
    staged(news={"track_a": News({'"; drop table x': Sighting(Seen.TEXT, 1, "/a")})}),
    staged(news={"track_a": News({"b": Sighting(Seen.TEXT, LARGE, "/a")})}),
    staged(news={"track_b": News()}),
    staged(id_segments=[IdSegment(f"{HERE}/staged-{HEX}", 0, LARGE)]),
]


@pytest.mark.parametrize("result", STAGE_LIES)
def test_a_stage_result_that_lies_is_noticed(result: StageResult) -> None:
    assert answers.stage(StageContext(HERE, STORAGE, WholeArchive(STORAGE), DIALECT, {}, 10, 10), RAW, result)


def test_a_part_of_the_index_that_was_made_anew_elsewhere_is_held_against_what_was_asked() -> None:
    context = ReindexContext(HERE, STORAGE, DIALECT, ())
    good = NewIds(f"{HERE}/ids-{HEX}", 3, 5)
    assert answers.reindex(context, [], None) is None
    assert answers.reindex(context, [], good) is None
    lies = [
        good._replace(messages=-1),
        good._replace(checksum=1 << 128),
        *(good._replace(path=path) for path in OUTSIDE),
    ]
    for lie in lies:
        assert answers.reindex(context, [], lie), lie


TRACK_A = route_hash(("track_a",))


def deduped(**changes: Any) -> DedupeResult:
    whole = DedupeResult(
        files=counts({0: Count(2, 1, 0, (1 << 128) - 1)}),
        routes=counts({TRACK_A: Count(2, 1, 0, 5)}),
        dropped=f"{HERE}/dropped-{HEX}",
        new_ids=NewIds(f"{HERE}/ids-{HEX}", 2, 5),
        carried=f"{HERE}/carried-{HEX}",
        carried_routes={TRACK_A: 1},
    )
    return dataclasses.replace(whole, **changes)


NO_COUNTS = [
    b"",
    b"no",
    counts({})[:-1],
    counts({0: Count()})[:-1],
    packing.packed(bytes(47)),
    packing.packed(bytes(49)),
]
DEDUPE = DedupeContext(HERE, STORAGE, Mode.SYNC, (), (), (), frozenset())


def test_what_dedupe_tasks_really_return_is_accepted() -> None:
    assert answers.dedupe(DEDUPE, Share(0, 256), deduped()) is None
    assert answers.dedupe(DEDUPE, Share(0, 256), deduped(dropped=None, new_ids=None, carried=None)) is None


@pytest.mark.parametrize(
    "result",
    [
        *(deduped(dropped=path) for path in OUTSIDE),
        *(deduped(carried=path) for path in OUTSIDE),
        *(deduped(new_ids=NewIds(path, 1, 1)) for path in OUTSIDE),
        deduped(new_ids=NewIds(f"{HERE}/ids-{HEX}", -1, 1)),
        deduped(new_ids=NewIds(f"{HERE}/ids-{HEX}", 1, -1)),
        deduped(new_ids=NewIds(f"{HERE}/ids-{HEX}", 1, 1 << 128)),
        deduped(files=counts({0: Count(LARGE)})),
        deduped(files=counts({0: Count(0, LARGE)})),
        deduped(routes=counts({0: Count(0, 0, LARGE)})),
        *(deduped(files=content) for content in NO_COUNTS),
        *(deduped(routes=content) for content in NO_COUNTS),
        deduped(carried_routes={0: -1}),
    ],
)
def test_a_dedupe_result_that_lies_is_noticed(result: DedupeResult) -> None:
    assert answers.dedupe(DEDUPE, Share(0, 256), result)


def test_a_table_that_nobody_knows_is_an_error_of_ours() -> None:
    assert combine([deduped()], [("track_a",)]).tables == {"track_a": Count(2, 1, 0, 5)}
    for lie in (deduped(routes=counts({8: Count(1)})), deduped(carried_routes={8: 1})):
        with pytest.raises(InternalError, match="neither the lake nor this run has: 8"):
            combine([lie], [("track_a",)])


SHARE = TableShare("track_a", (), NONE)
FILE = DataFile(
    "track_a",
    ("2025-11-16", "00"),
    f"segment-data/data/src1/segment_type=track_a/day=2025-11-16/hr=00/{RUN}-0123456789abcdef-1.parquet",
    f"{HERE}/data/{HEX}/{RUN}-0123456789abcdef-1.parquet",
    3,
    1000,
    HEX,
    1763251200000000,
    1763251200000001,
)
PUBLISH = PublishContext(RUN, STORAGE, DIALECT, (), (), (), False)


def published(**changes: Any) -> list[Published]:
    return [Published("track_a", [FILE._replace(**changes)], 3, Counter({"user_id": 1}))]


def test_what_publish_tasks_really_return_is_accepted() -> None:
    assert answers.publish(PUBLISH, [SHARE], published()) is None
    assert answers.publish(PUBLISH, [SHARE, SHARE], published() * 2) is None  # two parts of one table
    by_day = dataclasses.replace(PUBLISH, dialect=msgspec.structs.replace(DIALECT, date_partition=DatePartition.DAY))
    path = FILE.path.replace("/hr=00", "")
    assert answers.publish(by_day, [SHARE], published(partition=("2025-11-16",), path=path)) is None


@pytest.mark.parametrize(
    "result",
    [
        [],
        published() * 2,
        [Published("track_b", [])],
        [Published("track_a", [], -1)],
        [Published("track_a", [], 0, Counter({"user_id": -1}))],
        [Published("track_a", [], 0, Counter({"User Id": 1}))],
        *(published(written=path) for path in OUTSIDE),
        published(written=FILE.written.replace(f"{HERE}/", "segment-stage/1/")),
        published(written=FILE.written.replace("/data/", "/data/../")),
        published(written=FILE.written.replace(f"/{RUN}-", "/1-"), path=FILE.path.replace(f"/{RUN}-", "/1-")),
        published(path="segment-data/commits/source=src1/1.json"),
        published(path=FILE.path.replace("src1", "src2")),
        published(path=FILE.path.replace("hr=00", "hr=01")),
        published(path=FILE.path.replace("hr=00", "hr=01"), partition=("2025-11-16", "01")),
        published(path=FILE.path.replace("-1.parquet", "-2.parquet")),
        published(table_key="track_b", path=FILE.path.replace("track_a", "track_b")),
        published(partition=("2025-11-16",)),
        published(rows=-1),
        published(size=LARGE),
        published(digest="no digest"),
        published(first_received=1 << 62),
        published(last_received=LARGE),
        published(last_received=FILE.first_received - 1),
    ],
)
def test_a_publish_result_that_lies_is_noticed(result: list[Published]) -> None:
    assert answers.publish(PUBLISH, [SHARE], result)


INSPECT = ExamineContext(STORAGE, WholeArchive(STORAGE), DIALECT)


class Inspected(NamedTuple):
    check: Callable[[Any, Any, Any], str | None]
    task: Any
    true: list[Any]
    lies: list[Any]


@pytest.mark.parametrize(
    "case",
    [
        Inspected(
            answers.examine_raw,
            ["a", "b"],
            [[FileSeen("a", HEX, Messages(1, 2)), FileSeen("b", None)]],
            [
                [FileSeen("a", HEX)],
                [FileSeen("b", HEX), FileSeen("a", HEX)],
                [FileSeen("a", HEX, Messages(-1, 0)), FileSeen("b", None)],
                [FileSeen("a", HEX, Messages(1, -1)), FileSeen("b", None)],
            ],
        ),
        Inspected(
            answers.examine_index,
            "a",
            [IndexSeen(None), IndexSeen(None, "damaged"), IndexSeen([Partition(1, -1, Messages(1, 2))])],
            [IndexSeen([Partition(1, 1, Messages(-1, 2))]), IndexSeen([Partition(1, 1, Messages(1, 1 << 128))])],
        ),
        Inspected(
            answers.difference,
            Suspect("track_a", 1, (), (), (("track_a",),)),
            [Difference(1, [b"x"], 1, ["m1"])],
            [Difference(-1, [], 0, []), Difference(0, [], LARGE, [])],
        ),
        Inspected(answers.names_of, Nameless(frozenset({b"x"}), ()), [{}, {b"x": "m1"}], [{b"y": "m1"}]),
        Inspected(STEPS["twice"].problem, 2, [4], [5]),
    ],
)
def test_a_result_of_verify_or_the_doctor_that_lies_is_noticed(case: Inspected) -> None:
    for result in case.true:
        assert case.check(INSPECT, case.task, result) is None
    for result in case.lies:
        assert case.check(INSPECT, case.task, result)


class Lying(ThroughMailbox):
    """A cluster whose answer to one step somebody else has written."""

    def __init__(self, mailbox: Callable[[], Mailbox], step: str, lie: Callable[[dict[str, Any]], Any]) -> None:
        super().__init__(mailbox)
        self._step = step
        self._lie = lie

    def run(self, function: Callable[[Any, Any], Any], context: Any, tasks: Sequence[Any], progress: Any = None) -> Any:
        if function.__name__ != self._step:
            return super().run(function, context, tasks, progress)
        true = json.loads(wire.encoded([function(context, task) for task in tasks]))
        content = json.dumps({"results": [self._lie(result) for result in true]}).encode()
        return wire.decoded_answer(content, Request(STEPS[self._step], context, tasks), "result-1")


@pytest.mark.parametrize(
    ("step", "lie"),
    [
        ("stage", lambda result: result | {"quarantine": "segment-data/commits/source=src1/1.json"}),
        ("dedupe", lambda result: result | {"new_ids": ["eventlake.toml", 1, 1]}),
        ("publish", lambda result: [part | {"files": [["track_a", [], "a", "b", 1, 1, HEX, 0, 0]]} for part in result]),
    ],
)
def test_a_sync_that_is_lied_to_publishes_nothing_and_the_next_one_loads_all(
    tmp_path: Path, step: str, lie: Callable[[dict[str, Any]], Any]
) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    lake.runner = Lying(lambda: Mailbox(lake.place.storage, "segment-stage/1", STEPS), step, lie)
    lake.put(track("A", "m1"), b"broken")
    with pytest.raises(InternalError, match="result-1 is not what"):
        lake.sync()
    assert lake.data_files() == []
    lake.runner = InProcess()
    assert lake.sync()[0]["books"]["loaded"] == 1


def test_the_names_of_steps_are_those_of_their_functions() -> None:
    assert STEPS["twice"] == Step(twice, STEPS["twice"].problem)
    assert all(name == step.function.__name__ for name, step in STEPS.items())
