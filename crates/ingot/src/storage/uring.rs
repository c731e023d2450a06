//! Many reads at the device at once, by io_uring.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use io_uring::{IoUring, opcode, types};

use super::coalesce::{Run, coalesce};
use super::descriptors::is_exhausted;
use super::pread::{self, Pread, land_empty};
use super::{Cost, Landed, Read, ReadAt};
use crate::process;

/// Reads under way at once, and how many bytes they may ask for together.
const DEPTH: usize = Cost::DEVICE.depth;
const FLIGHT_BYTES_MAX: usize = 16 << 20;

/// Longer runs are read in parts of this size.
const PART_BYTES_MAX: usize = Cost::DEVICE.part;

/// Buffers up to this size are kept for the next read.
const KEPT_BYTES_MAX: usize = 64 << 10;
const PAGE_BYTES: usize = 4096;

/// Alignments to try for reads past the page cache; `BUFFERED` reads through it.
const ALIGN_FIRST: usize = 512;
const ALIGN_LAST: usize = 4096;
const BUFFERED: usize = 1;

/// A file that is read with many requests under way, past the page cache where
/// the file system allows that.
///
/// What a ring cannot do (it is refused, a request fails) is done by positioned
/// reads, so the results and the errors are theirs.
pub struct Uring {
    file: Arc<File>,
    pread: Pread,
    direct: OnceLock<Option<File>>,
    align: AtomicUsize,
}

/// Returns whether the system gives rings to this process. The first call makes one.
pub fn is_available() -> bool {
    match Answer::known() {
        Some(answer) => answer == Answer::Given,
        None => Ring::take().map(Ring::give_back).is_some(),
    }
}

/// What the system has answered to the first request for a ring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Given = 1,
    Refused = 2,
}

/// The answer, and the generation of the process that has asked; 0 before.
static ANSWER: AtomicU64 = AtomicU64::new(0);

impl Answer {
    fn known() -> Option<Answer> {
        let generation = process::generation();
        match ANSWER.load(Ordering::Relaxed) {
            known if known >> 2 != generation => None,
            known if known & 3 == Answer::Given as u64 => Some(Answer::Given),
            known if known & 3 == Answer::Refused as u64 => Some(Answer::Refused),
            _ => None,
        }
    }

    fn remember(self) {
        ANSWER.store(process::generation() << 2 | self as u64, Ordering::Relaxed);
    }
}

impl Uring {
    /// Returns a reader of `file`. Costs nothing before the first read.
    pub fn new(file: Arc<File>) -> Uring {
        let pread = Pread::new(Arc::clone(&file));
        Uring { file, pread, direct: OnceLock::new(), align: AtomicUsize::new(ALIGN_FIRST) }
    }

    /// Returns the descriptor to read from, and the alignment it asks for.
    fn source(&self) -> (RawFd, usize) {
        let direct = match self.direct.get() {
            Some(direct) => direct,
            None => self.open_direct(),
        };
        match (direct, self.align.load(Ordering::Relaxed)) {
            (None, _) | (_, BUFFERED) => (self.file.as_raw_fd(), BUFFERED),
            (Some(direct), align) => (direct.as_raw_fd(), align),
        }
    }

    #[cold]
    fn open_direct(&self) -> &Option<File> {
        process::without_fork(|| {
            // The path may lead to another file by now, the descriptor does not.
            let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path);
            // Another thread may have been faster.
            let _ = self.direct.set(direct.ok());
        });
        self.direct.get().expect("set above, here or by another thread")
    }

    /// Continues after an alignment was refused.
    fn refuse(&self, align: usize) {
        let next = if align < ALIGN_LAST { ALIGN_LAST } else { BUFFERED };
        let _ = self.align.compare_exchange(align, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl ReadAt for Uring {
    fn size(&self) -> io::Result<u64> {
        self.pread.size()
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        read_files(vec![(self, 0, reads)], landed);
    }
}

/// Reads a batch over many files in one ring; the reads of each are numbered from a number on.
pub(super) fn read_files(
    mut groups: Vec<(&Uring, usize, &mut [Read<'_>])>,
    landed: &mut Landed<'_>,
) {
    // One read costs less without the ring, and may stay in the page cache.
    let is_alone = groups.iter().map(|(_, _, reads)| reads.len()).sum::<usize>() == 1;
    let ring = if is_alone { None } else { Ring::take() };
    let Some(mut ring) = ring else {
        let groups = groups.into_iter().map(|(file, first, reads)| (&file.pread, first, reads));
        return pread::read_files(groups.collect(), landed);
    };
    let mut runs = Vec::new();
    for (file, first, reads) in &mut groups {
        land_empty(reads, *first, landed);
        runs.extend(coalesce(reads, *first, Cost::DEVICE).into_iter().map(|run| {
            let parts_left = run.len.div_ceil(PART_BYTES_MAX);
            FileRun { file, run, parts_left }
        }));
    }
    if read_runs(&mut ring, &mut runs, landed).is_ok() {
        ring.give_back();
    }
    for FileRun { file, run, .. } in runs.iter_mut().filter(|run| run.parts_left > 0) {
        let outcomes = file.pread.fill_run(run);
        run.land_each(outcomes, landed);
    }
}

/// A run, its file, and how many parts of it have not arrived.
struct FileRun<'f, 'r, 'a> {
    file: &'f Uring,
    run: Run<'r, 'a>,
    parts_left: usize,
}

/// Reads runs until all have landed or failed. Those that have not landed then are those
/// with parts left.
fn read_runs(
    ring: &mut Ring,
    runs: &mut [FileRun<'_, '_, '_>],
    landed: &mut Landed<'_>,
) -> io::Result<()> {
    let mut parts = split(runs);
    let mut flight_bytes = 0;
    loop {
        while let Some(part) = parts.front()
            && (flight_bytes == 0 || flight_bytes + part.len <= FLIGHT_BYTES_MAX)
            && let Some(slot) = ring.free.pop()
        {
            flight_bytes += part.len;
            let part = parts.pop_front().expect("seen above");
            ring.begin(slot, part, runs[part.run].file.source())?;
        }
        if ring.free.len() == DEPTH {
            return Ok(());
        }
        for (slot, result) in ring.wait()? {
            let part = match ring.finish(slot, result)? {
                Outcome::Continued => continue,
                Outcome::Misaligned { align, part } => {
                    runs[part.run].file.refuse(align);
                    flight_bytes -= part.len;
                    parts.push_front(part);
                    continue;
                }
                Outcome::Failed { part } => part,
                Outcome::Done { part, bytes } => {
                    let FileRun { run, parts_left, .. } = &mut runs[part.run];
                    run.fill(part.from, bytes);
                    *parts_left -= 1;
                    if *parts_left == 0 {
                        run.land(landed);
                    }
                    part
                }
            };
            flight_bytes -= part.len;
        }
    }
}

/// A part of a run that is one request.
#[derive(Clone, Copy)]
struct Part {
    run: usize,
    offset: u64,
    from: usize,
    len: usize,
}

/// Offsets that no file can have are left out: there is nothing to ask a device for.
fn split(runs: &[FileRun<'_, '_, '_>]) -> VecDeque<Part> {
    let is_sane = |run: &Run<'_, '_>| {
        let end = run.offset.checked_add(run.len as u64 + ALIGN_LAST as u64);
        end.is_some_and(|end| end <= i64::MAX as u64)
    };
    let mut parts = VecDeque::with_capacity(runs.len());
    for (k, FileRun { run, .. }) in runs.iter().enumerate().filter(|(_, flown)| is_sane(&flown.run))
    {
        parts.extend((0..run.len).step_by(PART_BYTES_MAX).map(|from| Part {
            run: k,
            offset: run.offset + from as u64,
            from,
            len: (run.len - from).min(PART_BYTES_MAX),
        }));
    }
    parts
}

/// A ring of one thread, with the memory that the kernel writes to.
///
/// All requests go to memory of the ring, never to that of the caller. So a ring
/// with requests under way can be abandoned at any point, a panic included: it
/// and its memory are then leaked, as they are in the child of a fork.
struct Ring {
    ring: ManuallyDrop<IoUring>,
    slots: ManuallyDrop<Vec<Slot>>,
    free: Vec<usize>,
    generation: u64,
}

#[derive(Default)]
struct Slot {
    memory: Vec<u8>,
    /// Where the aligned part of `memory` begins.
    start: usize,
    flight: Option<Flight>,
}

/// A request under way: `len` bytes at `offset`, of which the first `skip` are
/// there for alignment alone.
#[derive(Clone, Copy)]
struct Flight {
    part: Part,
    fd: RawFd,
    align: usize,
    offset: u64,
    len: usize,
    skip: usize,
    filled: usize,
}

enum Outcome<'s> {
    Done { part: Part, bytes: &'s [u8] },
    Continued,
    Misaligned { align: usize, part: Part },
    Failed { part: Part },
}

thread_local!(static SPARE: RefCell<Option<Box<Ring>>> = const { RefCell::new(None) });

impl Ring {
    /// Returns the ring of this thread, or none if the system refuses rings, or has no
    /// descriptor for one at the moment.
    fn take() -> Option<Box<Ring>> {
        let generation = process::generation();
        let spare = SPARE.try_with(|spare| spare.borrow_mut().take()).ok()?;
        if let Some(ring) = spare.filter(|ring| ring.generation == generation) {
            return Some(ring);
        }
        if Answer::known() == Some(Answer::Refused) {
            return None;
        }
        match Ring::new(generation) {
            Ok(ring) => {
                Answer::Given.remember();
                Some(ring)
            }
            Err(error) => {
                if !is_exhausted(&error) {
                    Answer::Refused.remember();
                }
                None
            }
        }
    }

    fn give_back(self: Box<Self>) {
        let _ = SPARE.try_with(|spare| *spare.borrow_mut() = Some(self));
    }

    fn new(generation: u64) -> io::Result<Box<Ring>> {
        let ring = IoUring::builder()
            .dontfork()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(DEPTH as u32)
            .or_else(|_| IoUring::builder().dontfork().build(DEPTH as u32))?;
        Ok(Box::new(Ring {
            ring: ManuallyDrop::new(ring),
            slots: ManuallyDrop::new((0..DEPTH).map(|_| Slot::default()).collect()),
            free: (0..DEPTH).collect(),
            generation,
        }))
    }

    fn begin(&mut self, slot: usize, part: Part, (fd, align): (RawFd, usize)) -> io::Result<()> {
        let skip = (part.offset % align as u64) as usize;
        let len = (skip + part.len).next_multiple_of(align);
        self.slots[slot].reserve(len);
        let offset = part.offset - skip as u64;
        self.request(slot, Flight { part, fd, align, offset, len, skip, filled: 0 })
    }

    /// Queues what is missing of a flight.
    fn request(&mut self, slot: usize, flight: Flight) -> io::Result<()> {
        let Slot { memory, start, flight: current } = &mut self.slots[slot];
        *current = Some(flight);
        let target = &mut memory[*start + flight.filled..*start + flight.len];
        let request =
            opcode::Read::new(types::Fd(flight.fd), target.as_mut_ptr(), target.len() as u32)
                .offset(flight.offset + flight.filled as u64)
                .build()
                .user_data(slot as u64);
        // SAFETY: the memory is the slot's, which is neither changed nor freed before
        // the request has completed; a ring that is dropped earlier leaks it.
        unsafe { self.ring.submission().push(&request) }.map_err(io::Error::other)
    }

    /// Hands the queued requests to the kernel and returns what has completed, at
    /// least one.
    fn wait(&mut self) -> io::Result<Vec<(usize, i32)>> {
        loop {
            let outcome = self.ring.submit_and_wait(1);
            let completed: Vec<_> = self
                .ring
                .completion()
                .map(|entry| (entry.user_data() as usize, entry.result()))
                .collect();
            match outcome {
                _ if !completed.is_empty() => return Ok(completed),
                Err(error) if !is_passing(error.raw_os_error()) => return Err(error),
                _ => {}
            }
        }
    }

    fn finish(&mut self, slot: usize, result: i32) -> io::Result<Outcome<'_>> {
        let mut flight = self.slots[slot].flight.take().expect("a request was under way");
        let Flight { part, align, skip, .. } = flight;
        if result < 0 && is_passing(Some(-result)) {
            self.request(slot, flight)?;
            return Ok(Outcome::Continued);
        }
        flight.filled += usize::try_from(result).unwrap_or(0);
        if result > 0 && flight.filled < skip + part.len && flight.filled.is_multiple_of(align) {
            self.request(slot, flight)?;
            return Ok(Outcome::Continued);
        }
        self.free.push(slot);
        Ok(if flight.filled >= skip + part.len {
            let slot = &self.slots[slot];
            Outcome::Done { part, bytes: &slot.memory[slot.start + skip..][..part.len] }
        } else if result == -libc::EINVAL && align != BUFFERED {
            Outcome::Misaligned { align, part }
        } else {
            Outcome::Failed { part }
        })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.free.len() == DEPTH && self.generation == process::generation() {
            // SAFETY: neither is used again. No request is under way, so the kernel
            // does not write to the slots.
            unsafe {
                ManuallyDrop::drop(&mut self.ring);
                ManuallyDrop::drop(&mut self.slots);
            }
        }
    }
}

impl Slot {
    /// Makes room for `len` aligned bytes. No request is under way.
    fn reserve(&mut self, len: usize) {
        let wanted = len + PAGE_BYTES;
        if self.memory.len() < wanted || self.memory.len() > KEPT_BYTES_MAX.max(wanted) {
            self.memory = Vec::new();
            self.memory = vec![0; wanted.next_power_of_two()];
            self.start = self.memory.as_ptr().align_offset(PAGE_BYTES);
        }
    }
}

/// Returns whether an error says no more than: try again.
fn is_passing(errno: Option<i32>) -> bool {
    matches!(errno, Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
