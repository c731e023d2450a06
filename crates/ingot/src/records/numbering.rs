//! The numbers of the files that cells are in, through all shards.

/// Numbers files through shards: those of a shard are consecutive, its file of rows first.
///
/// Costs nothing while each shard has one file.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbering {
    /// For each shard the number of its first file.
    firsts: Vec<u32>,
    /// For each file its shard, and its place there.
    places: Vec<(u32, u32)>,
    shards: u32,
}

impl Numbering {
    /// Numbers the files of shards that have so many.
    pub fn new(counts: &[usize]) -> Numbering {
        let shards = counts.len() as u32;
        if counts.iter().all(|&count| count == 1) {
            return Numbering { shards, ..Numbering::default() };
        }
        let (mut firsts, mut places) = (Vec::with_capacity(counts.len()), Vec::new());
        for (shard, &count) in (0..).zip(counts) {
            firsts.push(places.len() as u32);
            places.extend((0..count as u32).map(|place| (shard, place)));
        }
        Numbering { firsts, places, shards }
    }

    /// Number of files.
    pub fn num_files(&self) -> u32 {
        if self.places.is_empty() { self.shards } else { self.places.len() as u32 }
    }

    /// Returns the number of the first file of a shard.
    #[inline]
    pub fn first(&self, shard: usize) -> u32 {
        if self.firsts.is_empty() { shard as u32 } else { self.firsts[shard] }
    }

    /// Returns the shard of a file, and its place there.
    #[inline]
    pub fn place(&self, number: u32) -> (usize, usize) {
        if self.places.is_empty() {
            return (number as usize, 0);
        }
        let (shard, place) = self.places[number as usize];
        (shard as usize, place as usize)
    }
}
