import os

from tests.packed.packs import ORDER


def test_listings_say_what_is_in_a_folder(folder):
    assert folder.list("images") == ["1.png", "10.png", "2.png", "labels"]
    assert folder.list("images", folders=False) == ["1.png", "10.png", "2.png"]
    assert folder.list("images", files=False) == ["labels"]
    assert folder.list("images", files=False, folders=False) == []
    below = ["1.png", "10.png", "2.png", "labels", "labels/1.txt"]
    assert folder.list(folder / "images", recursive=True) == below
    assert folder.list(recursive=True, folders=False) == ORDER
    every_folder = ["emptydir", "images", "images/labels", "sub", "sub/deep", "sub/deep/er"]
    assert folder.list(recursive=True, files=False) == every_folder
    assert folder.list("emptydir") == []


def in_any_order(walked):
    return sorted((path, sorted(folders), sorted(files)) for path, folders, files in walked)


def test_walk_is_that_of_the_folder_that_was_packed(folder, source):
    for top in ("", "sub", "images", "emptydir", "sub/deep"):
        real = [(os.path.relpath(path, source), *rest) for path, *rest in os.walk(source / top)]
        expected = [("" if path == "." else path, *rest) for path, *rest in real]
        assert in_any_order(folder.walk(top)) == in_any_order(expected)
    assert [path for path, _, _ in folder.walk("./sub/")] == ["sub", "sub/deep", "sub/deep/er"]


def test_walk_leaves_out_folders_that_are_removed_from_the_list(folder):
    seen = []
    for path, folders, _ in folder.walk():
        seen.append(path)
        folders[:] = [name for name in folders if name != "deep"] + ["unheard of"]
    assert seen == ["", "emptydir", "images", "images/labels", "sub"]
