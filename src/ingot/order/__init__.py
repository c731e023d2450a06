"""Which row is at which position: shuffled, repeated, sharded, mixed, cut and packed."""

from ingot.order.description import difference
from ingot.order.mixture import concat as concat
from ingot.order.mixture import interleave as interleave
from ingot.order.mixture import mix as mix
from ingot.order.order import Order as Order
from ingot.order.pictures import Pictures as Pictures
from ingot.order.rows import Groups, Origin, Rows

__all__ = ["Groups", "Origin", "Rows", "difference"]
