//! Round robin over parts of different lengths.

/// Which part supplies a position when parts take turns. When one ends, the others continue.
///
/// A stage is a stretch in which the same parts take turns; finding it is a binary search.
pub struct Turns {
    stages: Vec<Stage>,
}

struct Stage {
    /// The first position of the stage.
    start: u64,
    /// How many samples each of its parts has given before.
    given: u64,
    /// The parts that take turns, in order.
    parts: Vec<u32>,
}

impl Turns {
    /// Plans the turns of parts by their lengths; `None` is a part without end.
    pub fn new(lens: &[Option<u64>]) -> Self {
        let mut ends: Vec<u64> = lens.iter().flatten().copied().filter(|&len| len > 0).collect();
        ends.sort_unstable();
        ends.dedup();
        if lens.contains(&None) || ends.is_empty() {
            ends.push(u64::MAX);
        }
        let mut stages: Vec<Stage> = Vec::with_capacity(ends.len());
        let (mut start, mut given) = (0, 0);
        for end in ends {
            let active = |len: &Option<u64>| len.is_none_or(|len| len > given);
            let parts: Vec<u32> =
                (0..lens.len()).filter(|&k| active(&lens[k])).map(|k| k as u32).collect();
            let after = (end - given).saturating_mul(parts.len() as u64);
            stages.push(Stage { start, given, parts });
            start = start.saturating_add(after);
            given = end;
        }
        Turns { stages }
    }

    /// Returns the part of a position, and the position in the part.
    #[inline]
    pub fn at(&self, position: u64) -> (usize, u64) {
        let after = self.stages.partition_point(|stage| stage.start <= position);
        let stage = &self.stages[after - 1];
        let (turn, count) = (position - stage.start, stage.parts.len() as u64);
        (stage.parts[(turn % count) as usize] as usize, stage.given + turn / count)
    }
}
