//! What an original was when something was made of it.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::records::content::{offsets, samples, told};
use crate::records::source::Source;
use crate::storage::{Identity, Tag};

/// Two changes within one tick of a file system's clock leave the same time: on one that counts
/// parts of seconds, and on one that does not.
const TICKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// Size and times of a file, and checksums of samples of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Bytes of the file.
    pub bytes: u64,
    /// When its content was changed, as its owner says, in nanoseconds since 1970; nothing where
    /// that is not known.
    pub mtime_ns: Option<i64>,
    /// When the file was changed, as the system says; nothing where that is not known, or where
    /// it was so short ago that another change could leave the same time.
    pub ctime_ns: Option<i64>,
    /// The CRC-32C of each of up to sixteen samples of 4 KiB, from the front to the end.
    pub samples: Vec<u32>,
}

/// How a file compares to what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is the same.
    Same,
    /// Only its content can tell.
    Unsure,
    /// It was written to.
    Changed,
    /// It was not written to, but its bytes at this offset differ.
    Damaged(u64),
}

impl Stamp {
    /// Returns the stamp of a file. Waits if it was changed within the last tick of its clock.
    pub fn of(source: Source<'_>) -> Result<Stamp> {
        let found = source.storage.identity().map_err(|error| source.failed(0, error))?;
        if let Some(pause) = remaining(found.tag.ctime_ns, SystemTime::now()) {
            thread::sleep(pause);
        }
        let now = SystemTime::now();
        let mut stamp = Stamp::unsettled(source)?;
        if remaining(stamp.ctime_ns, now).is_some() {
            stamp.ctime_ns = None;
        }
        Ok(stamp)
    }

    /// As [`Stamp::of`], of a file that no other process writes to.
    pub fn unsettled(source: Source<'_>) -> Result<Stamp> {
        let found = source.storage.identity().map_err(|error| source.failed(0, error))?;
        let Identity { size: bytes, tag: Tag { mtime_ns, ctime_ns, .. } } = found;
        Ok(Stamp { bytes, mtime_ns, ctime_ns, samples: samples(source, bytes)? })
    }

    /// Says how the file of this stamp compares to what it was when it had the stamp `before`.
    pub fn since(&self, before: &Stamp) -> Change {
        let differing =
            self.samples.iter().zip(&before.samples).position(|(now, then)| now != then);
        let knows_times = self.ctime_ns.is_some() && before.ctime_ns.is_some();
        if (self.bytes, self.mtime_ns) != (before.bytes, before.mtime_ns) {
            return Change::Changed;
        }
        match differing {
            Some(sample) if knows_times && self.ctime_ns == before.ctime_ns => {
                Change::Damaged(offsets(self.bytes)[sample])
            }
            Some(_) => Change::Changed,
            None if knows_times && self.ctime_ns == before.ctime_ns => Change::Same,
            None => Change::Unsure,
        }
    }

    /// Whether the file was not written to since it had the stamp `before`, a moment ago.
    pub fn is_steady(&self, before: &Stamp) -> bool {
        match self.since(before) {
            Change::Same => true,
            // Unknown. The next process that opens the file compares its content.
            Change::Unsure => before.ctime_ns.is_none(),
            Change::Changed | Change::Damaged(_) => false,
        }
    }

    /// Returns bytes that identify the content; a copy of the file has the same.
    pub fn content(&self) -> Vec<u8> {
        told(self.bytes, &self.samples)
    }
}

/// Returns how long to wait until a change of a file leaves another time; none if it would do so
/// at once.
fn remaining(ctime_ns: Option<i64>, now: SystemTime) -> Option<Duration> {
    let since = Duration::from_nanos(ctime_ns? as u64);
    let tick = if since.subsec_nanos() == 0 { TICKS.1 } else { TICKS.0 };
    let left = (UNIX_EPOCH + since + tick).duration_since(now).ok()?;
    // The clocks of two machines may differ by more: there is nothing to wait for.
    (!left.is_zero()).then_some(left.min(tick))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(samples: &[u32], mtime: i64, ctime: Option<i64>) -> Stamp {
        let samples = samples.to_vec();
        Stamp { bytes: 1 << 20, mtime_ns: Some(mtime), ctime_ns: ctime, samples }
    }

    #[test]
    fn a_file_was_written_to_or_is_damaged_or_the_same() {
        let before = stamp(&[1, 2, 3], 7, Some(8));
        assert_eq!(before.since(&before), Change::Same);
        assert_eq!(stamp(&[1, 2, 3], 8, Some(8)).since(&before), Change::Changed);
        assert_eq!(stamp(&[1, 2, 3], 7, Some(9)).since(&before), Change::Unsure);
        assert_eq!(stamp(&[1, 2, 3], 7, None).since(&before), Change::Unsure);
        assert_eq!(before.since(&stamp(&[1, 2, 3], 7, None)), Change::Unsure);
        assert_eq!(stamp(&[1, 5, 3], 7, Some(9)).since(&before), Change::Changed);
        let second = offsets(1 << 20)[1];
        assert_eq!(stamp(&[1, 5, 3], 7, Some(8)).since(&before), Change::Damaged(second));
    }

    #[test]
    fn a_file_settles_with_the_next_tick() {
        let second = Duration::from_secs(100);
        let changed = second + Duration::from_millis(500);
        let at = |time: Duration, now: Duration| {
            remaining(Some(time.as_nanos() as i64), UNIX_EPOCH + now)
        };
        let after = |time, millis| at(time, time + Duration::from_millis(millis));
        assert_eq!(after(changed, 5), Some(Duration::from_millis(15)));
        assert_eq!(after(changed, 30), None);
        assert_eq!(after(second, 30), Some(Duration::from_millis(1970)));
        assert_eq!(at(changed, Duration::from_secs(10)), Some(TICKS.0));
    }
}
