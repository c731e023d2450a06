//! Work on many files at once that tells how far it is and can be stopped.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::open::Report;
use crate::error::{Error, Result};
use crate::pool::Pool;

/// How long whoever waits sleeps until it looks how far the work is: short at first, for small
/// files.
const PAUSES: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(20));

/// How far work is.
pub struct Progress {
    done: AtomicU64,
    is_stopped: AtomicBool,
}

impl Progress {
    /// Says that so many bytes more are done. Fails if the work is to stop.
    pub fn add(&self, bytes: u64) -> Result<()> {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        if self.is_stopped.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// Calls `one` for each of `count` files, several at a time, and returns what it has returned.
/// `report` is called now and then with the bytes done, of `total`. The first error stops all.
pub fn in_parallel<T: Send>(
    count: usize,
    total: u64,
    report: &mut Report<'_>,
    one: &(dyn Fn(usize, &Progress) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let progress = Progress { done: AtomicU64::new(0), is_stopped: AtomicBool::new(false) };
    let next = AtomicUsize::new(0);
    let outcomes: Vec<Mutex<Option<Result<T>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let run = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(outcome) = outcomes.get(number) else { return };
        if progress.is_stopped.load(Ordering::Relaxed) {
            return;
        }
        let found = one(number, &progress);
        if found.is_err() {
            progress.is_stopped.store(true, Ordering::Relaxed);
        }
        *outcome.lock().expect("no panics under this lock") = Some(found);
    };
    thread::scope(|scope| {
        let threads = Pool::compute().width().clamp(1, count.max(1));
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let (mut told, mut pause) = (Ok(()), PAUSES.0);
        while running.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(pause);
            pause = PAUSES.1.min(2 * pause);
            let done = progress.done.load(Ordering::Relaxed).min(total);
            told = told.and_then(|()| report(done, total));
            if told.is_err() {
                progress.is_stopped.store(true, Ordering::Relaxed);
            }
        }
        told
    })?;
    report(total, total)?;
    let outcomes = outcomes.into_iter().map(|one| {
        let outcome = one.into_inner().expect("no panics under this lock");
        outcome.unwrap_or(Err(Error::Stopped))
    });
    let (mut found, mut is_stopped) = (Vec::with_capacity(count), false);
    for outcome in outcomes {
        match outcome {
            Ok(one) => found.push(one),
            // The others stopped because one failed; that one says why.
            Err(Error::Stopped) => is_stopped = true,
            Err(error) => return Err(error),
        }
    }
    if is_stopped { Err(Error::Stopped) } else { Ok(found) }
}
