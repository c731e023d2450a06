//! One batch of tasks, and the threads that work on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long a helper looks for the next task of a batch before it leaves.
const PATIENCE: Duration = Duration::from_micros(30);

/// How long a caller looks whether its batch has ended before it sleeps.
const PATIENCE_OF_CALLER: Duration = Duration::from_micros(80);

/// How often a caller that sleeps looks by itself whether its batch has ended.
const NAP: Duration = Duration::from_millis(10);

/// A batch of numbered tasks that any number of threads claim one by one.
pub struct Job {
    work: Work,
    /// Tasks that were published so far, and whether those are all.
    ready: AtomicUsize,
    complete: AtomicBool,
    claimed: AtomicUsize,
    finished: AtomicUsize,
    panicked: AtomicBool,
    /// Helpers that were called and have not left.
    called: AtomicUsize,
    /// Those of them that look for the next task.
    waiting: AtomicUsize,
    caller: Thread,
}

/// A borrowed closure, alive for as long as its job has unfinished tasks.
struct Work(*const (dyn Fn(usize) + Sync));

#[allow(unsafe_code)]
// SAFETY: the closure is `Sync`, and whoever makes a job waits for the last call to end.
unsafe impl Send for Work {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Job {
    /// Returns a job without tasks. The caller must not return before all tasks have ended,
    /// also when something panics: see [`Job::wait`].
    #[allow(unsafe_code)]
    pub fn new(work: &(dyn Fn(usize) + Sync)) -> Arc<Job> {
        // SAFETY: only the lifetime changes. The pointer is used by claimed tasks alone,
        // and those who make jobs wait for every claimed task, also when something panics.
        let work: *const (dyn Fn(usize) + Sync + 'static) =
            unsafe { std::mem::transmute(std::ptr::from_ref(work)) };
        Arc::new(Job {
            work: Work(work),
            ready: AtomicUsize::new(0),
            complete: AtomicBool::new(false),
            claimed: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            called: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            caller: thread::current(),
        })
    }

    /// Publishes tasks. Returns how many there are so far.
    pub fn publish(&self, tasks: usize) -> usize {
        self.ready.fetch_add(tasks, Ordering::SeqCst) + tasks
    }

    /// Says that no task will be published any more.
    pub fn complete(&self) {
        self.complete.store(true, Ordering::Release);
    }

    /// Returns how many tasks were published.
    pub fn num_tasks(&self) -> usize {
        self.ready.load(Ordering::Acquire)
    }

    /// Returns whether there are more tasks than helpers who were called to them, and none of
    /// these is free.
    pub fn is_short_of_helpers(&self) -> bool {
        let ready = self.ready.load(Ordering::SeqCst);
        let unclaimed = ready - self.claimed.load(Ordering::SeqCst);
        self.called.load(Ordering::Relaxed) < ready
            && unclaimed > self.waiting.load(Ordering::SeqCst)
    }

    /// Returns how many helpers were called and have not left.
    pub fn num_called(&self) -> usize {
        self.called.load(Ordering::Relaxed)
    }

    /// Counts helpers that are called.
    pub fn expect(&self, helpers: usize) {
        self.called.fetch_add(helpers, Ordering::Relaxed);
    }

    /// Returns whether all tasks were claimed, and no more will come.
    pub fn is_claimed(&self) -> bool {
        self.complete.load(Ordering::Acquire) && !self.has_task()
    }

    /// Returns whether a task of the job has panicked.
    pub fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    /// Works on tasks until there is none to claim. Returns how many that were.
    #[allow(unsafe_code)]
    pub fn work(&self) -> usize {
        let mut done = 0;
        while let Some(task) = self.claim() {
            // SAFETY: task `task` is unfinished, so the caller still waits for it.
            let work = unsafe { &*self.work.0 };
            if catch_unwind(AssertUnwindSafe(|| work(task))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            self.finished.fetch_add(1, Ordering::AcqRel);
            if self.is_finished() {
                self.caller.unpark();
            }
            done += 1;
        }
        done
    }

    /// Works on tasks as a helper that was called, and leaves when none has come for a while.
    pub fn help(&self) {
        self.work();
        while self.comes() {
            self.work();
        }
        self.called.fetch_sub(1, Ordering::Relaxed);
    }

    /// Waits until all tasks have ended.
    pub fn wait(&self) {
        spin(PATIENCE_OF_CALLER, || self.is_finished());
        while !self.is_finished() {
            thread::park_timeout(NAP);
        }
    }

    fn claim(&self) -> Option<usize> {
        let next = |task| (task < self.ready.load(Ordering::Acquire)).then_some(task + 1);
        self.claimed.fetch_update(Ordering::SeqCst, Ordering::Acquire, next).ok()
    }

    fn has_task(&self) -> bool {
        self.claimed.load(Ordering::SeqCst) < self.ready.load(Ordering::SeqCst)
    }

    /// Waits a moment for a task to be published; false if none was. The last look is after
    /// this helper ceased to count as waiting, so that either it sees a task, or the one who
    /// publishes the task sees that nobody waits.
    fn comes(&self) -> bool {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        spin(PATIENCE, || self.has_task() || self.complete.load(Ordering::Acquire));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.has_task()
    }

    fn is_finished(&self) -> bool {
        self.complete.load(Ordering::Acquire)
            && self.finished.load(Ordering::Acquire) >= self.ready.load(Ordering::Acquire)
    }
}

/// Looks for something without giving up the core, for at most about so long.
pub fn spin(patience: Duration, is_there: impl Fn() -> bool) {
    if is_there() {
        return;
    }
    let since = Instant::now();
    while since.elapsed() < patience {
        for _ in 0..16 {
            std::hint::spin_loop();
            if is_there() {
                return;
            }
        }
    }
}
