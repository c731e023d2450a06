"""Ranks of a device mesh."""

from torch.distributed.device_mesh import DeviceMesh

from ingot.loader.topology import topology_of


def shard_of(mesh: DeviceMesh, *dimensions: str) -> tuple[int, int]:
    """Return rank and number of ranks among which data is split, for `shard=`.

    Ranks that differ only in other dimensions, such as those of tensor parallelism, get the same
    data.

    Args:
        mesh: A device mesh.
        dimensions: The names of its dimensions that split the data, the outer ones first. A mesh
            of one dimension needs none.

    Raises:
        ValueError: The mesh has no such dimension, or has several and none is named.

    Example:
        >>> mesh = init_device_mesh(
        ...     "cuda", (2, 8, 4), mesh_dim_names=("replicate", "shard", "tensor")
        ... )  # doctest: +SKIP
        >>> shard = ingot.torch.shard_of(mesh, "replicate", "shard")  # doctest: +SKIP
    """
    if not dimensions:
        return topology_of(mesh)[:2]
    names = mesh.mesh_dim_names or ()
    rank, world = 0, 1
    for name in dimensions:
        if name not in names:
            found = ", ".join(map(repr, names)) or "no names"
            message = f"the mesh has no dimension {name!r}, it has {found}"
            raise ValueError(message)
        size = mesh.size(names.index(name))
        rank, world = rank * size + mesh.get_local_rank(name), world * size
    return rank, world
