"""Pictures as tensors of PyTorch."""

import torch

import ingot
from tests.order.test_pictures import MEAN, STD, jpegs, noise, same  # noqa: F401


def test_normalised_values_match_torch():
    pixels = noise(16, 16)
    found = ingot.Pictures("image", 16, mean=MEAN, std=STD, layout="chw")({"image": pixels})
    tensor = torch.from_numpy(pixels).permute(2, 0, 1).float().div(255)
    tensor = tensor.sub(torch.tensor(MEAN)[:, None, None]).div(torch.tensor(STD)[:, None, None])
    assert same(found["image"], tensor.contiguous().numpy())


def test_tensors_come_from_the_same_memory(jpegs):
    order = jpegs.shuffle(0).map(ingot.Pictures("image", 24, mean=0.5, std=0.25, layout="chw"))
    with ingot.Loader(order, batch_size=8, to="torch") as loader:
        batch = loader.batch(0)
    assert batch["image"].shape == (8, 3, 24, 24)
    assert batch["image"].dtype == torch.float32
    assert same(batch["image"][3].numpy(), order[3]["image"])
