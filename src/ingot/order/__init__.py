"""Which row is at which position: shuffled, repeated, sharded, mixed, cut and packed."""

from ingot.order.description import difference
from ingot.order.mixing import concat, interleave, mix
from ingot.order.order import Order
from ingot.order.rows import Groups, Rows

__all__ = ["Groups", "Order", "Rows", "concat", "difference", "interleave", "mix"]
