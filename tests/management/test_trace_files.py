"""Files of recorded loads: every form that is read, and one sentence for each that cannot be."""

from __future__ import annotations

import gzip

import pytest

from scheduler.domain.traces import TraceError
from scheduler.management.trace_files import read_trace_file

CSV = b"timestamp,duration,num_gpus,cluster\n0,5,1,etl\n40,5,8,vision\n"
SWF = b"; Version: 2.2\n1 0 5 100 4 -1 -1 -1 -1 -1 1 3 1 -1 2 -1 -1 -1\n"
PACKED = gzip.compress(CSV * 50, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "jobs"),
    [
        ("load.csv", CSV, 2),
        ("load.csv.gz", gzip.compress(CSV, mtime=0), 2),
        ("load.swf", SWF, 1),
        ("load.swf.gz", gzip.compress(SWF, mtime=0), 1),
        ("with-a-mark.csv", b"\xef\xbb\xbf" + CSV, 2),
        ("from-windows.csv", CSV.replace(b"\n", b"\r\n"), 2),
    ],
)
def test_csv_and_swf_are_read_plain_and_packed(tmp_path, name, content, jobs):
    path = tmp_path / name
    path.write_bytes(content)

    assert len(read_trace_file(str(path))) == jobs


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"\xff\xfe\x00", "it is not a text in UTF-8."),
        ("b.csv.gz", CSV, "it is not a whole gzip file."),
        ("c.csv.gz", PACKED[:40], "it is not a whole gzip file."),
        ("d.csv.gz", PACKED[:20] + b"\x55" * 30 + PACKED[50:], "it is not a whole gzip file."),
    ],
)
def test_a_file_that_is_something_else_is_named(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(TraceError) as error:
        read_trace_file(str(path))

    assert str(error.value) == f"{path} cannot be read: {sentence}"


def test_a_folder_and_a_file_that_is_not_there_are_named(tmp_path):
    with pytest.raises(TraceError, match="Is a directory"):
        read_trace_file(str(tmp_path))
    with pytest.raises(TraceError, match="No such file"):
        read_trace_file(str(tmp_path / "load.csv"))
