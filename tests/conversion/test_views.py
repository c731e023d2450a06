import numpy as np
import pytest

import ingot
from tests.support import containers

LABELS = [row["label"] for row in containers.rows()]


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    with ingot.DatasetWriter(folder / "rows", containers.SPEC, shard_rows=12) as writer:
        writer.extend(containers.rows())
    with ingot.DatasetWriter(folder / "scores.ingot", {"score": "float"}) as writer:
        writer.extend({"score": k / 7} for k in range(containers.NUM_ROWS))
    with ingot.open(folder / "rows") as found:
        yield found


def views(dataset):
    """Return parts of a data set, and the numbers of their rows."""
    scores = ingot.open(str(dataset.path).replace("rows", "scores.ingot"))
    chosen = np.flatnonzero(np.array(LABELS) == 1).tolist()
    return {
        "where": (dataset.where(dataset.column("label") == 1), chosen),
        "slice": (dataset[20:4:-3], list(range(20, 4, -3))),
        "select": (dataset.select("caption", "label"), list(range(containers.NUM_ROWS))),
        "take": (dataset.take([7, 3, 7, 29]), [7, 3, 7, 29]),
        "concat": (dataset[25:].concat(dataset[:5]), [*range(25, 30), *range(5)]),
        "zip": (dataset.zip(scores)[10:20], list(range(10, 20))),
    }


@pytest.mark.parametrize("target", ["x.ingot", "x", "x.parquet", "x.h5", "x.jsonl", "x.csv"])
@pytest.mark.parametrize("name", ["where", "slice", "select", "take", "concat", "zip"])
def test_a_part_of_a_data_set_is_converted_in_its_own_order(dataset, tmp_path, name, target):
    view, numbers = views(dataset)[name]
    names = [one for one in view.spec if one not in {"image", "box"}]
    view = view.select(*names) if target in {"x.jsonl", "x.csv"} else view
    done = ingot.convert(view, tmp_path / target)
    assert (done.rows, done.checked) == (len(numbers), True)
    found = ingot.open(tmp_path / target)
    assert set(found.spec) == set(view.spec)
    assert [row["caption"] for row in found] == [f"picture {k} \u00e9" for k in numbers]
    assert found.column("label").tolist() == [LABELS[k] for k in numbers]
    assert len(dataset[3]["caption"]) > 0  # What was open stays open.


def test_an_image_of_a_part_is_never_encoded_again(dataset, tmp_path):
    ingot.convert(dataset.take([5, 2]), tmp_path / "x.tar")
    found = ingot.open(tmp_path / "x.tar", spec={"image.jpg": "bytes"})
    assert [row["image"]["jpg"] for row in found] == [containers.jpeg(5), containers.jpeg(2)]


def test_records_of_a_reader_or_a_view_are_converted(tmp_path):
    with ingot.Writer(tmp_path / "a.ingot") as writer:
        writer.extend(containers.RECORDS)
    with ingot.open(tmp_path / "a.ingot") as reader:
        ingot.convert(reader, tmp_path / "whole.bag")
        ingot.convert(reader.take([4, 2, 2]), tmp_path / "some.array_record")
        ingot.convert(reader[1:3].concat(reader[:1]), tmp_path / "joined")
        assert reader[1] == b"first"
    assert list(ingot.open(tmp_path / "whole.bag")) == containers.RECORDS
    found = list(ingot.open(tmp_path / "some.array_record"))
    assert found == [containers.RECORDS[k] for k in (4, 2, 2)]
    found = [row["record"] for row in ingot.open(tmp_path / "joined")]
    assert found == [containers.RECORDS[k] for k in (1, 2, 0)]


def test_names_choose_among_the_fields_of_a_part(dataset, tmp_path):
    ingot.convert(dataset[5:8], tmp_path / "x.csv", names=["label"])
    assert (tmp_path / "x.csv").read_text() == "label\n1\n-1\n0\n"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("data/rows", "the target is the source"),
        ("data", "the target contains the source"),
        ("data/rows/x.csv", "the target is inside the source"),
        ("data/scores.ingot", "the target is the source"),
    ],
)
def test_a_target_among_the_files_of_a_part_is_rejected(dataset, tmp_path, target, message):
    source = ingot.open(tmp_path / "data" / "scores.ingot") if "scores" in target else dataset
    with pytest.raises(ValueError, match=message):
        ingot.convert(source[:2], tmp_path / target, overwrite=True)


def test_a_spec_for_an_open_source_is_rejected(dataset, tmp_path):
    with pytest.raises(ValueError, match=r"spec= is for paths; pass it to ingot\.open"):
        ingot.convert(dataset, tmp_path / "x.csv", spec={"label": "int"})


def test_objects_that_are_neither_paths_nor_open_are_rejected(dataset, tmp_path):
    with pytest.raises(TypeError, match="expected a path or a list of paths, got int"):
        ingot.convert(5, tmp_path / "x.csv")
    with pytest.raises(TypeError, match=r"got Order: ds\.take\(rows\)"):
        ingot.convert(dataset.shuffle(seed=0), tmp_path / "x.csv")


def test_a_conversion_of_other_rows_of_the_files_does_not_continue(dataset, tmp_path):
    def stop(done, _):
        if done > 8:
            raise KeyboardInterrupt

    options = {"shard_bytes": 500, "workers": 0}
    with pytest.raises(KeyboardInterrupt):
        ingot.convert(dataset[:20], tmp_path / "y", progress=stop, **options)
    assert (tmp_path / ".y.converting").exists()
    with pytest.raises(ValueError, match="resume=False"):
        ingot.convert(dataset[5:25], tmp_path / "y", **options)
    ingot.convert(dataset[:20], tmp_path / "y", **options)
    captions = [row["caption"] for row in ingot.open(tmp_path / "y")]
    assert captions == [f"picture {k} \u00e9" for k in range(20)]
