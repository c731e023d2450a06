"""Ranks that work on the same samples get the same samples."""

import json

import ingot


def test_ranks_of_a_device_mesh_that_share_a_model_get_the_same_batches(run_fault, tmp_path):
    outcome = run_fault("mesh_ranks.py", tmp_path / "store")
    assert outcome.returncode == 0, outcome.stderr
    ranks = json.loads(outcome.stdout)
    order = ingot.Order.of(range(99)).shuffle(4)
    shares = [[one.tolist() for one in ingot.Loader(order, 8, shard=(dp, 2))] for dp in range(2)]
    assert [one["batches"] for one in ranks] == [[shares[one["dp"]]] * 3 for one in ranks]
    assert [one["dp"] for one in ranks] == [0, 0, 1, 1]
    assert [one["dp and tp"] for one in ranks] == [[0, 4], [1, 4], [2, 4], [3, 4]]
    assert [one["tp and dp"] for one in ranks] == [[0, 4], [2, 4], [1, 4], [3, 4]]
    assert [one["auto"] for one in ranks] == [[0, 4], [1, 4], [2, 4], [3, 4]]
    assert [one["one dimension"] for one in ranks] == [[0, 2], [1, 2], [0, 2], [1, 2]]
    for one in ranks:
        assert one["whole mesh"] == (
            "the device mesh has 2 dimensions: pass the one that splits the data, such as "
            'mesh["data"], or ingot.torch.shard_of(mesh, ...) for several'
        )
        assert one["no such dimension"] == "the mesh has no dimension 'cp', it has 'dp', 'tp'"
