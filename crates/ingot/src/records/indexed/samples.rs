//! Samples as MDS and LitData store them: the sizes of values, then the values.

use std::ops::Range;

use super::offsets::Offsets;
use super::sink::Sink;
use super::stream::Stream;
use crate::crc::Sum;
use crate::error::Result;
use crate::format::Violation;

/// Goes through the samples that are next in a stream, and calls `put` for each value: its
/// number in the sample, its offset in the file, and its bytes. `sizes` has the sizes of values,
/// none for one whose size each sample tells.
pub fn scan_samples(
    offsets: &Offsets,
    sizes: &[Option<u64>],
    stream: &mut Stream<'_>,
    sink: &mut Sink<'_>,
    mut put: impl FnMut(usize, u64, &[u8], &mut Sink<'_>) -> Result<()>,
) -> Result<()> {
    for row in 0..offsets.num_rows() {
        let range = offsets.range(row, stream)?;
        let (start, len) = (range.start, range.end - range.start);
        let sample = stream.peek(len)?;
        sink.begin(start);
        let parts = parts(sizes, sample).map_err(|why| sink.refuse(&why))?;
        for (k, part) in parts.into_iter().enumerate() {
            put(k, start + part.start as u64, &sample[part], sink)?;
        }
        let crc = Sum::Crc32c.append(0, sample);
        stream.advance(len as usize);
        sink.end(len, crc)?;
    }
    Ok(())
}

/// Returns where the values of a sample are: the sizes of those that vary come first.
fn parts(sizes: &[Option<u64>], sample: &[u8]) -> Result<Vec<Range<usize>>, Violation> {
    let cut = || Violation("the sample is cut short".to_owned());
    let varying = sizes.iter().filter(|size| size.is_none()).count();
    let (head, _) = sample.split_at_checked(4 * varying).ok_or_else(cut)?;
    let mut told = head.as_chunks().0.iter().map(|&one| u32::from_le_bytes(one) as usize);
    let mut at = head.len();
    let mut parts = Vec::with_capacity(sizes.len());
    for size in sizes {
        let size = size.map_or_else(|| told.next(), |size| usize::try_from(size).ok());
        let end = size.and_then(|size| at.checked_add(size)).filter(|&end| end <= sample.len());
        let end = end.ok_or_else(cut)?;
        parts.push(at..end);
        at = end;
    }
    if at != sample.len() {
        let left = sample.len() - at;
        return Err(Violation(format!("{left} bytes follow the last value of the sample")));
    }
    Ok(parts)
}
