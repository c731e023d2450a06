//! Choosing how the cells of a field are compressed, from its first rows.

use crate::compression::{self, Codec, Compressor};

/// What the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Zstd where the first rows shrink by it, nothing elsewhere.
    Auto,
    /// Zstd, with a dictionary where one pays.
    Zstd,
    /// LZ4.
    Lz4,
    /// Store values as they are.
    None,
}

/// Bytes of values that a choice is made on.
pub const SAMPLE: usize = 4 << 20;

/// Largest dictionary that is trained.
const DICTIONARY_MAX: usize = 16 << 10;

/// Values longer than this on average gain nothing from a dictionary.
const DICTIONARY_VALUE_MAX: usize = 16 << 10;

/// Fewest values to train on.
const DICTIONARY_VALUES_MIN: usize = 64;

/// `Auto` leaves a field alone if it does not shrink to this share, in percent.
const WORTH: usize = 90;

/// Bytes of values that settle a choice, if they come in short batches.
const ENOUGH: u64 = 1 << 20;

/// How one field is compressed from here on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// How to read what is stored.
    pub codec: Codec,
    /// What zstd was primed with; empty for nothing.
    pub dictionary: Vec<u8>,
}

/// A choice, and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What was chosen last.
    pub choice: Choice,
    /// How often values were tried, in this file and in those it has the decision from.
    pub tries: u32,
    /// Bytes of values that were tried; a full batch counts as enough of them.
    pub evidence: u64,
}

impl Decision {
    /// Returns the decision after values were tried once more.
    pub fn after(known: Option<&Decision>, choice: Choice, bytes: u64, is_full: bool) -> Decision {
        let (tries, evidence) = known.map_or((0, 0), |known| (known.tries, known.evidence));
        let least = if is_full { ENOUGH } else { 0 };
        let evidence = evidence.saturating_add(bytes).max(least);
        Decision { choice, tries: tries.saturating_add(1), evidence }
    }

    /// Whether later values are not tried.
    pub fn is_settled(&self) -> bool {
        self.evidence >= ENOUGH
    }
}

/// The decision for each field, where there is one. Files of one data set hand it on, so that
/// it is made once.
pub type Decisions = Vec<Option<Decision>>;

/// Chooses for one field, by trying on its first values.
pub fn choose(wish: Compression, level: i32, values: &[&[u8]]) -> Choice {
    let plain = |codec| Choice { codec, dictionary: Vec::new() };
    match wish {
        Compression::None => return plain(Codec::None),
        Compression::Lz4 => return plain(Codec::Lz4),
        Compression::Auto | Compression::Zstd => {}
    }
    let total: usize = values.iter().map(|value| value.len()).sum();
    let without = compressed_len(values, level, b"");
    let dictionary = train(values, total);
    let with = dictionary.as_ref().map_or(usize::MAX, |bytes| {
        compressed_len(values, level, bytes).saturating_add(bytes.len())
    });
    let (len, dictionary) =
        if with < without { (with, dictionary.unwrap_or_default()) } else { (without, Vec::new()) };
    if wish == Compression::Auto && len * 100 > total * WORTH {
        return plain(Codec::None);
    }
    Choice { codec: Codec::Zstd, dictionary }
}

/// Trains on values up to the sample size; a dictionary of a hundredth of them is
/// what its makers advise.
fn train(values: &[&[u8]], total: usize) -> Option<Vec<u8>> {
    if values.len() < DICTIONARY_VALUES_MIN || total / values.len() > DICTIONARY_VALUE_MAX {
        return None;
    }
    let mut samples = Vec::new();
    samples.try_reserve(total.min(SAMPLE)).ok()?;
    let mut sizes = Vec::with_capacity(values.len());
    for value in values {
        if samples.len() >= SAMPLE {
            break;
        }
        samples.extend_from_slice(value);
        sizes.push(value.len());
    }
    let bytes_max = (samples.len() / 64).clamp(1 << 10, DICTIONARY_MAX);
    compression::train(&samples, &sizes, bytes_max)
}

fn compressed_len(values: &[&[u8]], level: i32, dictionary: &[u8]) -> usize {
    let mut compressor = Compressor::new(Codec::Zstd, level, dictionary);
    let mut out = Vec::new();
    values
        .iter()
        .map(|value| {
            out.clear();
            compressor.compress(value, &mut out).unwrap_or(value.len())
        })
        .sum()
}
