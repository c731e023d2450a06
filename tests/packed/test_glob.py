from pathlib import PurePosixPath

import pytest

import ingot
from tests.packed.packs import nested, write_pack

PATTERNS = ["*", "*.txt", "*/*", "*/", "**/*", "**/", "**/*.txt", "**/deep/**/*", "**/**/x*"]
PATTERNS += ["images/**/*.png", "[!a-z]*", "?.txt", "1*.png", "./A.txt", "deep/er/", "A.txt/"]
PATTERNS += ["sub/**/er/*", "**/d*/**/*", ".*", "[", "nope", "nope/*", "*.TXT", "**/*/*", "i*/l*/*"]
PATTERNS += ["**/.hidden", "A.txt/*", "**/*/", "*.p?g", "images//*", "[[]a]"]


@pytest.mark.parametrize("top", ["", "images", "sub", "sub/deep", "emptydir", "A.txt", "nope"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_they_match_for_pathlib(folder, source, top, pattern):
    real = source / top
    expected = {path.relative_to(real) for path in real.glob(pattern)}
    found = list((folder / top).glob(pattern))
    assert {PurePosixPath(str(path)).relative_to(top) for path in found} == expected
    assert len(found) == len(set(found)) == len(expected)
    assert [str(folder / top / path) for path in folder.glob(pattern, top)] == [*map(str, found)]
    deep = {path.relative_to(real) for path in real.rglob(pattern)}
    found = list((folder / top).rglob(pattern))
    assert {PurePosixPath(str(path)).relative_to(top) for path in found} == deep


def test_two_stars_at_the_end_match_all_that_is_below(folder):
    below = ["sub", "sub/.hidden", "sub/deep", "sub/deep/er", "sub/deep/er/x.tar.gz"]
    assert list(folder.glob("sub/**")) == [*below, "sub/deep/noext"]
    assert list(folder.glob("**", "emptydir")) == [""]
    assert list(folder.glob("**")) == ["", *folder.list(recursive=True)]
    assert list(folder.glob("A.txt/**")) == []


@pytest.mark.timeout(20)
def test_patterns_take_no_longer_for_more_stars(tmp_path):
    folder = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", nested(256)))
    assert list(folder.glob("**/d/" * 60 + "nope")) == []
    assert len(list(folder.glob("**/d/**/d/**/f"))) == 1


@pytest.mark.parametrize("pattern", ["", ".", "./"])
def test_a_pattern_has_a_part(folder, pattern):
    with pytest.raises(ValueError, match="is not a valid pattern"):
        (folder / "images").glob(pattern)


def test_a_pattern_is_relative(folder):
    with pytest.raises(NotImplementedError, match="expected a relative pattern"):
        folder.glob("/A.txt")
    with pytest.raises(NotImplementedError, match="expected a relative pattern"):
        folder.path().rglob("/A.txt")
    assert [str(path) for path in (folder / "sub").rglob("")] == ["sub", "sub/deep", "sub/deep/er"]
