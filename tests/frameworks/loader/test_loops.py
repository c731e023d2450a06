"""Where a loop begins and ends, alike for every kind of loader."""

import json

import grain
import numpy as np
import pytest

import ingot
import ingot.grain
import ingot.jax
import ingot.torch

# There may be fewer cores than workers.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")

ROWS = 20
BATCH = 4
STEPS = 5


def make_torch(order, **options):
    return ingot.torch.DataLoader(order, BATCH, **options)


def make_torch_with_workers(order):
    return make_torch(order, num_workers=2, multiprocessing_context="fork")


def make_torch_with_persistent_workers(order):
    options = {"num_workers": 1, "multiprocessing_context": "fork", "persistent_workers": True}
    return make_torch(order, **options)


class Grained:
    """Loops of Grain over one loader, which an iterator closes when nobody holds it any more."""

    def __init__(self, order):
        self.loader = ingot.Loader(order, BATCH)
        self.iterators = []

    def __iter__(self):
        self.iterators.append(ingot.grain.BatchIterator(self.loader))
        return self.iterators[-1]

    def state_dict(self):
        return self.loader.state_dict()

    def load_state_dict(self, state):
        if self.iterators:
            self.iterators[-1].set_state(state)
        else:
            self.loader.load_state_dict(state)


MAKERS = {
    "Loader": lambda order: ingot.Loader(order, BATCH, workers=2),
    "Loader without threads": lambda order: ingot.Loader(order, BATCH, workers=0),
    "torch": make_torch,
    "torch with workers": make_torch_with_workers,
    "torch with persistent workers": make_torch_with_persistent_workers,
    "jax": lambda order: ingot.jax.Batches(order, BATCH),
    "grain": Grained,
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def shuffled():
    return ingot.Order.of(range(ROWS)).shuffle(seed=1)


def plain(batches):
    return [np.asarray(one).tolist() for one in batches]


def expected(first, stop):
    """Return the batches of some steps."""
    samples = list(shuffled().repeat(1 + stop // STEPS))
    return [samples[BATCH * step : BATCH * (step + 1)] for step in range(first, stop)]


def seek(loader, step):
    """Go to a step, by the loader that is inside where there is one."""
    getattr(loader, "loader", loader).seek(step)


def step_of(loader):
    return getattr(loader, "loader", loader).step


def test_a_loop_is_an_epoch_even_after_a_peek_or_a_break(make):
    loader = make(shuffled())
    assert plain([next(iter(loader))]) == expected(0, 1)
    assert plain(loader) == expected(STEPS, 2 * STEPS)
    for count, _ in enumerate(loader):
        if count == 2:
            break
    assert step_of(loader) == 2 * STEPS + 3
    assert plain(loader) == expected(3 * STEPS, 4 * STEPS)
    assert plain(loader) == expected(4 * STEPS, 5 * STEPS)


def test_a_loop_of_which_nothing_was_taken_loses_nothing(make):
    loader = make(shuffled())
    iter(loader)
    iter(loader)
    assert step_of(loader) == 0
    assert plain(loader) == expected(0, STEPS)
    iter(loader)
    assert plain(loader) == expected(STEPS, 2 * STEPS)


def test_an_iterator_continues_where_it_stopped(make):
    batches = iter(make(shuffled()))
    assert plain([next(batches), next(batches)]) == expected(0, 2)
    found = []
    while (one := next(batches, None)) is not None:
        found.append(one)
    assert plain(found) == expected(2, STEPS)
    assert next(batches, None) is None


@pytest.mark.parametrize("taken", [0, 1, 3, STEPS])
def test_a_state_names_what_was_handed_out_last(make, taken):
    loader = make(shuffled())
    batches = iter(loader)
    for _ in range(taken):
        next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["position"] == BATCH * taken
    del batches
    iter(loader)
    assert loader.state_dict() == state
    again = make(shuffled())
    again.load_state_dict(state)
    assert plain(again) == (expected(taken, STEPS) or expected(STEPS, 2 * STEPS))


def test_a_loop_begins_where_the_loader_was_put(make):
    loader = make(shuffled())
    seek(loader, 3)
    assert plain(loader) == expected(3, STEPS)
    next(iter(loader))
    seek(loader, step_of(loader))
    assert plain(loader) == expected(STEPS + 1, 2 * STEPS)
    seek(loader, 2)
    next(iter(loader))
    assert plain(loader) == expected(STEPS, 2 * STEPS)


@pytest.mark.parametrize("place", [1, 3, STEPS + 2])
def test_a_running_loop_continues_where_the_loader_is_put(make, place):
    loader = make(shuffled())
    batches = iter(loader)
    found = [next(batches), next(batches)]
    seek(loader, place)
    rest = expected(place, STEPS * (1 + place // STEPS))
    assert plain([*found, *batches]) == expected(0, 2) + rest


@pytest.mark.parametrize("place", [1, 3, STEPS + 2])
def test_a_running_loop_continues_where_a_state_was_saved(make, place):
    other = make(shuffled())
    seek(other, place)
    state = other.state_dict()
    loader = make(shuffled())
    found = []
    for batch in loader:
        found.append(batch)
        if len(found) == 2:
            loader.load_state_dict(state)
    rest = expected(place, STEPS * (1 + place // STEPS))
    assert plain(found) == expected(0, 2) + rest


def test_an_endless_order_continues_where_it_stopped(make):
    loader = make(shuffled().repeat())
    found = []
    for count in (1, 3, 4):
        found += [batch for _, batch in zip(range(count), loader, strict=False)]
    assert plain(found) == expected(0, 8)


def test_the_older_of_two_loops_is_rejected(make):
    loader = make(shuffled())
    older = iter(loader)
    next(older)
    newer = iter(loader)
    if newer is older:  # Batches for JAX are an iterator themselves: both are the newer loop.
        assert plain([next(older)]) == expected(STEPS, STEPS + 1)
        return
    with pytest.raises(RuntimeError, match="another loop over this loader has begun"):
        next(older)
    assert plain(newer) == expected(STEPS, 2 * STEPS)


def test_a_data_set_of_grain_begins_anew_with_each_loop():
    batches = ingot.grain.Batches(shuffled(), BATCH)
    assert isinstance(batches, grain.IterDataset)
    assert plain([next(iter(batches))]) == expected(0, 1)
    assert plain(batches) == expected(0, STEPS)
