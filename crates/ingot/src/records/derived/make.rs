//! Making many derived files at once: what is missing, once over all processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::Derived;
use super::folder::{FolderLock, tidy};
use super::place::folder_of;
use crate::error::{Error, Result};
use crate::pool::Pool;

/// Pause between two looks at the progress of the work: short at first, for small files.
const PAUSES: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(20));

/// Called with the bytes done and their total, now and then; an error stops the work. The total is
/// 0 while another process does it.
pub type Report<'a> = dyn FnMut(u64, u64) -> Result<()> + 'a;

/// Finds derived files, and makes those that are missing, on several threads. Only one process
/// does so in a folder at a time, and the others find what it has made.
pub fn provide<D: Derived>(items: &[D], report: &mut Report<'_>) -> Result<Vec<D::Made>> {
    let found = each(items.len(), &|k| items[k].find());
    let mut found = found.into_iter().collect::<Result<Vec<Option<D::Made>>>>()?;
    let wanted: Vec<usize> = (0..items.len()).filter(|&k| found[k].is_none()).collect();
    if !wanted.is_empty() {
        let places = prepare_all(items, &wanted)?;
        let total = wanted.iter().map(|&k| items[k].bytes()).sum();
        let mut next = 0;
        let folders = places.iter().map(|place| folder_of(place).to_path_buf()).collect();
        let locks = FolderLock::wait(folders, &mut || {
            report(0, 0)?;
            while let Some(&k) = wanted.get(next) {
                found[k] = items[k].find()?;
                if found[k].is_none() {
                    return Ok(false);
                }
                next += 1;
            }
            Ok(true)
        })?;
        if let Some(_locks) = locks {
            let mut there: BTreeMap<&Path, Vec<&D>> = BTreeMap::new();
            for (&k, place) in wanted.iter().zip(&places) {
                there.entry(folder_of(place)).or_default().push(&items[k]);
            }
            there.iter().for_each(|(folder, items)| tidy(folder, items));
            let made = in_parallel(wanted.len(), total, report, &|n, progress| {
                let item = &items[wanted[n]];
                match item.find()? {
                    Some(one) => progress.add(item.bytes()).map(|()| one),
                    None => item.make(&places[n], progress),
                }
            })?;
            wanted.iter().zip(made).for_each(|(&k, one)| found[k] = Some(one));
        }
        report(total, total)?;
    }
    Ok(found.into_iter().map(|one| one.expect("found or made")).collect())
}

/// Makes the folders of derived files, and returns the place of each file.
fn prepare_all<D: Derived>(items: &[D], wanted: &[usize]) -> Result<Vec<PathBuf>> {
    let mut last: Option<(&Path, &Path)> = None;
    let place_of = |&k: &usize| {
        let places = items[k].places();
        let first = places.write.first().map(|place| folder_of(place));
        let place = match last {
            Some((of, folder)) if first == Some(of) => {
                places.write.iter().find(|place| folder_of(place) == folder)
            }
            _ => None,
        };
        if let Some(place) = place {
            return Ok(place.clone());
        }
        let place = places.prepare(D::TITLE, &items[k].original().name)?;
        last = first.map(|first| (first, folder_of(place)));
        Ok(place.to_path_buf())
    };
    wanted.iter().map(place_of).collect()
}

/// Does something for each of many files, many at a time.
pub fn each<T: Send>(count: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    if count == 1 { vec![work(0)] } else { Pool::blocking().map(count, work) }
}

/// How far work is.
pub struct Progress {
    done: AtomicU64,
    is_stopped: AtomicBool,
}

impl Progress {
    /// Adds bytes to those that are done. Fails if the work is to stop.
    pub fn add(&self, bytes: u64) -> Result<()> {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        if self.is_stopped.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// Calls `one` for each of `count` files, several at a time, and returns what it has returned.
/// `report` is called now and then with the bytes done, of `total`. The first error stops all.
fn in_parallel<T: Send>(
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
        let (mut outcome, mut pause) = (Ok(()), PAUSES.0);
        while running.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(pause);
            pause = PAUSES.1.min(2 * pause);
            let done = progress.done.load(Ordering::Relaxed).min(total);
            outcome = outcome.and_then(|()| report(done, total));
            if outcome.is_err() {
                progress.is_stopped.store(true, Ordering::Relaxed);
            }
        }
        outcome
    })?;
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
