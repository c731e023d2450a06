//! Damage as the tuples that `ingot.Damage` is made of.

use ingot::records::Damage;

pub type DamageTuple = (Option<u64>, u64, u64, String);

pub fn tuples(damaged: Vec<Damage>) -> Vec<DamageTuple> {
    damaged.into_iter().map(|one| (one.record, one.records, one.offset, one.reason)).collect()
}
