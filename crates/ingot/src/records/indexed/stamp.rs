//! What tells a file from what it was before.

use std::fs::{self, Metadata};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::records::content::{offsets, samples, told};
use crate::records::source::Source;
use crate::storage::Location;

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
    /// Nobody has written to it, but its bytes at this offset are others.
    Damaged(u64),
}

impl Stamp {
    /// Returns the stamp of a file. Waits if it was changed within the last tick of its clock.
    pub fn of(location: &Location, source: Source<'_>) -> Result<Stamp> {
        if let Location::Path(path) = location
            && let Some(pause) = fs::metadata(path).ok().and_then(|found| unsettled(&found))
        {
            thread::sleep(pause);
        }
        let now = SystemTime::now();
        let stamp = Stamp::unsettled(location, source)?;
        let changed = stamp.ctime_ns.map(|time| UNIX_EPOCH + Duration::from_nanos(time as u64));
        let is_settled = changed.is_some_and(|time| remaining(time, now).is_none());
        Ok(Stamp { ctime_ns: stamp.ctime_ns.filter(|_| is_settled), ..stamp })
    }

    /// As [`Stamp::of`], of a file that nobody else writes to.
    pub fn unsettled(location: &Location, source: Source<'_>) -> Result<Stamp> {
        let bytes = source.size()?;
        let found = match location {
            Location::Path(path) => fs::metadata(path).ok(),
            Location::Url(_) => None,
        };
        let mtime = found.as_ref().and_then(|found| found.modified().ok());
        let mtime_ns = mtime
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .and_then(|since| i64::try_from(since.as_nanos()).ok());
        let ctime_ns = found.as_ref().and_then(changed_ns);
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
            // No file here has such a time, so that there is nothing to be unsure of.
            None if !HAS_CTIME => Change::Same,
            None => Change::Unsure,
        }
    }

    /// Whether nobody has written to the file since it had the stamp `before`, a moment ago.
    pub fn is_steady(&self, before: &Stamp) -> bool {
        match self.since(before) {
            Change::Same => true,
            // Nobody can tell. The next one to open the file compares its content.
            Change::Unsure => before.ctime_ns.is_none(),
            Change::Changed | Change::Damaged(_) => false,
        }
    }

    /// Returns the bytes that tell the content from others; a copy of the file has the same.
    pub fn content(&self) -> Vec<u8> {
        told(self.bytes, &self.samples)
    }
}

#[cfg(unix)]
const HAS_CTIME: bool = true;
#[cfg(not(unix))]
const HAS_CTIME: bool = false;

#[cfg(unix)]
fn changed_ns(found: &Metadata) -> Option<i64> {
    use std::os::unix::fs::MetadataExt;
    let time = found.ctime().checked_mul(1_000_000_000)?.checked_add(found.ctime_nsec())?;
    (time >= 0).then_some(time)
}

#[cfg(not(unix))]
fn changed_ns(_found: &Metadata) -> Option<i64> {
    None
}

/// Returns how long to wait until a change of a file leaves another time; none if it would do so
/// at once.
fn unsettled(found: &Metadata) -> Option<Duration> {
    let time = UNIX_EPOCH + Duration::from_nanos(changed_ns(found)? as u64);
    remaining(time, SystemTime::now())
}

fn remaining(changed: SystemTime, now: SystemTime) -> Option<Duration> {
    let since = changed.duration_since(UNIX_EPOCH).ok()?;
    let tick = if since.subsec_nanos() == 0 { TICKS.1 } else { TICKS.0 };
    let left = (changed + tick).duration_since(now).ok()?;
    // The clocks of two machines may differ by more: there is nothing to wait for.
    (!left.is_zero()).then_some(left.min(tick))
}

/// Returns the CRC-32C of all bytes of a file. `progress` is called with how many bytes more were
/// read, and stops the work by an error.
pub fn content(source: Source<'_>, progress: &dyn Fn(u64) -> Result<()>) -> Result<u32> {
    let mut stream = super::Stream::of(source, progress)?;
    stream.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(samples: &[u32], mtime: i64, ctime: Option<i64>) -> Stamp {
        let samples = samples.to_vec();
        Stamp { bytes: 1 << 20, mtime_ns: Some(mtime), ctime_ns: ctime, samples }
    }

    #[test]
    #[cfg(unix)]
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
        let second = UNIX_EPOCH + Duration::from_secs(100);
        let changed = second + Duration::from_millis(500);
        let after = |time, millis| remaining(time, time + Duration::from_millis(millis));
        assert_eq!(after(changed, 5), Some(Duration::from_millis(15)));
        assert_eq!(after(changed, 30), None);
        assert_eq!(after(second, 30), Some(Duration::from_millis(1970)));
        let ahead = remaining(changed, second - Duration::from_secs(90));
        assert_eq!(ahead, Some(TICKS.0));
    }
}
