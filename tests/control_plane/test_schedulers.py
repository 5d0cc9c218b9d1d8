"""Other schedulers: missed in plain words, and no part of the control plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control_plane import builder, programs, schedulers


def test_without_them_it_is_said_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FUMAROLE_CONTROL_PLANE", str(tmp_path))
    (tmp_path / "complete").touch()

    assert programs.find() == programs.Programs(tmp_path)
    with pytest.raises(builder.NoControlPlane, match="make control-plane SCHEDULERS=1"):
        schedulers.find()


def test_the_published_types_are_named_in_volcanos_own_module_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(schedulers, "_version_of_apis", lambda: "v1.2.3")
    (tmp_path / "go.mod").write_text("replace (\n\tvolcano.sh/apis => ./staging/src\n)\n")
    (tmp_path / "go.sum").write_text("other v1 h1:x=\n")

    schedulers._name_published_apis(tmp_path)

    assert (tmp_path / "go.mod").read_text() == (
        "replace (\n\tvolcano.sh/apis => volcano.sh/apis v1.2.3\n)\n"
    )
    assert "\nvolcano.sh/apis v1.14.0 h1:" in (tmp_path / "go.sum").read_text()
