//! One batch of tasks that several threads work on.

use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long a caller looks for the end of the last task before it sleeps.
const SPIN: Duration = Duration::from_micros(20);

/// A batch of numbered tasks that any number of threads claim one by one.
pub struct Job {
    work: Work,
    tasks: usize,
    claimed: AtomicUsize,
    finished: AtomicUsize,
    panicked: AtomicBool,
    caller: Thread,
}

/// A borrowed closure, alive for as long as its job has unfinished tasks.
struct Work(*const (dyn Fn(usize) + Sync));

#[allow(unsafe_code)]
// SAFETY: the closure is `Sync`, and the creator of a job waits for the last call to end.
unsafe impl Send for Work {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Job {
    /// Returns a job that calls `work` with each number below `tasks`. The caller must not
    /// return before [`Job::wait`] has, even if something panics.
    #[allow(unsafe_code)]
    pub fn new(tasks: usize, work: &(dyn Fn(usize) + Sync)) -> Arc<Job> {
        // SAFETY: only the lifetime changes. The pointer is used for claimed tasks alone, and
        // the creator of the job waits for every one of them, even if something panics.
        let work: *const (dyn Fn(usize) + Sync + 'static) =
            unsafe { std::mem::transmute(std::ptr::from_ref(work)) };
        Arc::new(Job {
            work: Work(work),
            tasks,
            claimed: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            caller: thread::current(),
        })
    }

    /// Works on tasks until all are claimed; returns how many.
    #[allow(unsafe_code)]
    pub fn work(&self) -> usize {
        let mut done = 0;
        while let Some(task) = self.claim() {
            // SAFETY: task `task` is unfinished, so the caller still waits for it.
            let work = unsafe { &*self.work.0 };
            if catch_unwind(AssertUnwindSafe(|| work(task))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            if self.finished.fetch_add(1, Ordering::AcqRel) + 1 == self.tasks {
                self.caller.unpark();
            }
            done += 1;
        }
        done
    }

    /// Waits until all tasks have ended. Only the thread that made the job may call this.
    pub fn wait(&self) {
        // A helper is at its last task, which is short. To park costs more than most of them.
        let since = Instant::now();
        while !self.is_finished() && since.elapsed() < SPIN {
            hint::spin_loop();
        }
        while !self.is_finished() {
            thread::park();
        }
    }

    /// Returns whether all tasks were claimed.
    pub fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) >= self.tasks
    }

    /// Returns whether a task of the job has panicked.
    pub fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    fn claim(&self) -> Option<usize> {
        let task = self.claimed.fetch_add(1, Ordering::Relaxed);
        (task < self.tasks).then_some(task)
    }

    fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire) == self.tasks
    }
}
