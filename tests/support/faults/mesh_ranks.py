"""Four ranks of a device mesh of 2 x 2: those that share a model get the same samples.

Run as `mesh_ranks.py STORE`; each rank prints what it was given, as JSON.
"""

import json
import multiprocessing
import sys

import torch.distributed
from torch.distributed.device_mesh import init_device_mesh

import ingot
import ingot.torch

SHAPE = (2, 2)
BATCH = 8


def refusal(shard):
    try:
        ingot.Loader(range(99), BATCH, shard=shard)
    except ValueError as error:
        return str(error)
    return None


def no_dimension(mesh):
    try:
        ingot.torch.shard_of(mesh, "cp")
    except ValueError as error:
        return str(error)
    return None


def run(rank, store, results):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=4
    )
    mesh = init_device_mesh("cpu", SHAPE, mesh_dim_names=("dp", "tp"))
    order = ingot.Order.of(range(99)).shuffle(4)
    loaders = [
        ingot.Loader(order, BATCH, shard=mesh["dp"]),
        ingot.Loader(order, BATCH, shard=ingot.torch.shard_of(mesh, "dp")),
        ingot.torch.DataLoader(order, BATCH, shard=mesh["dp"]),
    ]
    found = ingot.Loader(order, BATCH)
    results.put(
        {
            "rank": rank,
            "dp": mesh.get_local_rank("dp"),
            "batches": [[batch.tolist() for batch in loader] for loader in loaders],
            "dp and tp": ingot.torch.shard_of(mesh, "dp", "tp"),
            "tp and dp": ingot.torch.shard_of(mesh, "tp", "dp"),
            "auto": (found.rank, found.world),
            "whole mesh": refusal(mesh),
            "no such dimension": no_dimension(mesh),
            "one dimension": ingot.torch.shard_of(mesh["tp"]),
        }
    )
    torch.distributed.destroy_process_group()


def main(store):
    context = multiprocessing.get_context("fork")  # PyTorch is imported once.
    results = context.Queue()
    ranks = [context.Process(target=run, args=(rank, store, results)) for rank in range(4)]
    for one in ranks:
        one.start()
    found = [results.get(timeout=120) for _ in ranks]
    for one in ranks:
        one.join()
    sys.stdout.write(json.dumps(sorted(found, key=lambda one: one["rank"])))


if __name__ == "__main__":
    main(sys.argv[1])
