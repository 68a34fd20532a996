"""The lines by which a worker tells whether DuckDB reads JSON as it is relied on."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from conftest import InProcess, Lake, track
from eventlake.reading import canary
from eventlake.reading.columns import ColumnReader

# A DuckDB that reads other lines than it is given.
OTHER_READER = "CREATE MACRO json_transform(line, wanted) AS system.main.json_transform({}, wanted)"


def duckdb_that_reads(line: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(OTHER_READER.format(line))
    return connection


def test_the_installed_duckdb_reads_as_relied_on() -> None:
    assert canary.misread(ColumnReader()) == []
    assert canary.duckdb_is_understood()


@pytest.mark.parametrize(
    ("line", "misread"),
    [
        pytest.param("replace(line, '12.25', '12.26')", b'{"a":12.25}', id="another digit"),
        pytest.param("replace(line, '1.10', '1.1000001')", b'{"a":1.10,"t":"x"}', id="prints more than was sent"),
        pytest.param("replace(line, '12.25', '12.2500001')", b'{"a":12.25}', id="prints more of a plain number"),
        pytest.param("replace(line, 'true', 'null')", b'{"a":true}', id="drops a boolean"),
        pytest.param("replace(line, '-0E0', 'null')", b'{"a":null}', id="prints no minus zero"),
        pytest.param("replace(line, 'é', 'ê')", '{"a":"é","t":"x"}'.encode(), id="another letter"),
        pytest.param("replace(line, 'a  b', 'a b')", b'{"a":" a  b ","t":"x"}', id="fewer spaces in texts"),
        pytest.param("replace(line, '[1,-2]', '[-2,1]')", b'{"a":[1,-2]}', id="arrays in another order"),
        pytest.param('replace(line, \'"a":1,"a"\', \'"t":1,"a"\')', b'{"a":1,"a":2}', id="keeps a key that came twice"),
        pytest.param(
            'replace(line, \'"c":"x"\', \'"q":"x"\')',
            b'{"t":"x","o":{"p":{"c":"x","d":null},"e":true},"a":1}',
            id="misses what is deep",
        ),
    ],
)
def test_another_way_to_read_is_noticed(line: str, misread: bytes) -> None:
    assert misread in canary.misread(ColumnReader(connection=duckdb_that_reads(line)))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("line", id="no change at all"),
        pytest.param("replace(line, '9184876', '9184875')", id="a number that is never taken from it"),
    ],
)
def test_what_changes_no_outcome_is_no_reason_to_do_without(line: str) -> None:
    assert canary.misread(ColumnReader(connection=duckdb_that_reads(line))) == []


SYNC = """
import sys
import duckdb
connect = duckdb.connect

def other(*args, **options):
    connection = connect(*args, **options)
    connection.execute(sys.argv[2])
    return connection

duckdb.connect = other
import json
from pathlib import Path
from conftest import InProcess
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
print(json.dumps(run(workspace, jobs.sync(workspace.connections.get("web")), InProcess())[0]))
"""


def test_with_a_duckdb_that_reads_otherwise_a_sync_reads_exactly_and_tells_so(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess())
    lake.put(*(track(message_id=f"m{number}", properties={"total": 12.25}) for number in range(1500)))
    macro = OTHER_READER.format("replace(line, '12.25', '12.26')")
    command = [sys.executable, "-c", SYNC, str(tmp_path / "workspace"), macro]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["books"]["loaded"] == 1500
    told = f"DuckDB {duckdb.__version__} reads JSON differently, so all lines were read the slow, exact way"
    assert report["notices"] == [told]
    totals = lake.query("select properties_total, count(*) as rows from web.track_clicked group by 1")
    assert totals == [{"properties_total": Decimal("12.25"), "rows": 1500}]


def test_with_the_installed_duckdb_there_is_nothing_to_tell(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess())
    report = lake.sync_of(*(track(message_id=f"m{number}") for number in range(1500)))
    assert report[0]["books"]["loaded"] == 1500
    assert "notices" not in report[0]
