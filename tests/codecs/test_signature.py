"""Files that are stored as they are."""

import pytest

import ingot


@pytest.mark.parametrize("kind", ["jpg", "png", "webp", "wav", "flac", "mp4"])
def test_bytes_that_do_not_begin_as_their_file_does_are_rejected(tmp_path, kind):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"file": kind}) as w:
        for data in (b"", b"abc", b"\0" * 64):
            with pytest.raises(ValueError, match=f"row 0: field 'file': .*not a {kind} file"):
                w.append({"file": data})
    assert len(ingot.open(tmp_path / "x.ingot")) == 0
