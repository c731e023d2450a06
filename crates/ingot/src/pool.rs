//! Threads that help with one batch at a time.
//!
//! The caller of [`Pool::run`] works too, so a batch never waits for a thread to
//! wake up: helpers that come in time take a share, the others find nothing left.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::PerProcess;

/// How long a helper of the compute pool looks for the next batch before it goes to
/// sleep. A thread that sleeps comes too late for a batch of microseconds.
const LINGER: Duration = Duration::from_micros(60);

/// A set of helper threads of one process, started when they are first needed.
pub struct Pool {
    shared: Arc<Shared>,
    helpers: usize,
    linger: Duration,
    started: Once,
    /// Batches that the caller is to work on alone.
    alone: AtomicU32,
    /// Nanoseconds that sharing has gained lately.
    gained: AtomicI64,
}

/// Sharing a batch gains about as long as the caller worked on it, and loses what it then
/// waits for a helper that was kept from its core. When the losses outweigh the gains,
/// something else wants the cores, and the caller works alone for this many batches.
const ALONE: u32 = 1024;

/// What sharing is credited with at the start, and can gather at most, in nanoseconds.
const CREDIT: i64 = 4_000_000;

#[derive(Default)]
struct Shared {
    queue: Mutex<VecDeque<Arc<Job>>>,
    arrived: Condvar,
    /// Jobs ever submitted: lets a lingering helper see news without the lock.
    submitted: AtomicU64,
    sleeping: AtomicUsize,
}

/// A batch of numbered tasks that any number of threads claim one by one.
struct Job {
    work: Work,
    /// Tasks that were published so far, and whether those are all.
    ready: AtomicUsize,
    complete: AtomicBool,
    claimed: AtomicUsize,
    finished: AtomicUsize,
    panicked: AtomicBool,
    caller: thread::Thread,
}

/// A borrowed closure, alive for as long as its job has unfinished tasks.
struct Work(*const (dyn Fn(usize) + Sync));

#[allow(unsafe_code)]
// SAFETY: the closure is `Sync`, and `Pool::run` does not return before the last call ended.
unsafe impl Send for Work {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Pool {
    /// Returns the pool for work that keeps a core busy: one thread a core, the caller among them.
    pub fn compute() -> Arc<Pool> {
        static POOL: PerProcess<Pool> = PerProcess::new();
        POOL.get(|| Pool::new(thread::available_parallelism().map_or(1, usize::from) - 1, LINGER))
    }

    /// Returns the pool for calls that wait for a device: more threads than cores.
    pub fn blocking() -> Arc<Pool> {
        static POOL: PerProcess<Pool> = PerProcess::new();
        POOL.get(|| Pool::new(63, Duration::ZERO))
    }

    fn new(helpers: usize, linger: Duration) -> Pool {
        Pool {
            shared: Arc::default(),
            helpers,
            linger,
            started: Once::new(),
            alone: AtomicU32::new(0),
            gained: AtomicI64::new(CREDIT),
        }
    }

    /// Draws the consequences of a batch that the caller worked on and then waited for.
    fn judge(&self, worked: Duration, waited: Duration) {
        let gain = worked.as_nanos() as i64 - waited.as_nanos() as i64;
        let gained = self.gained.load(Ordering::Relaxed).saturating_add(gain).min(CREDIT);
        if gained < 0 {
            self.alone.store(ALONE, Ordering::Relaxed);
        }
        self.gained.store(if gained < 0 { CREDIT / 4 } else { gained }, Ordering::Relaxed);
    }

    fn is_alone(&self) -> bool {
        let left = self.alone.load(Ordering::Relaxed);
        if left > 0 {
            self.alone.store(left - 1, Ordering::Relaxed);
        }
        left > 0
    }

    /// Starts the helpers. If the system has fewer threads to spare, the caller works more.
    fn start(&self) {
        for k in 0..self.helpers {
            let (shared, linger) = (Arc::clone(&self.shared), self.linger);
            let helper = thread::Builder::new().name(format!("ingot-{k}")).stack_size(512 << 10);
            if helper.spawn(move || help(&shared, linger)).is_err() {
                return;
            }
        }
    }

    /// Number of threads that can work on one batch, the caller included.
    pub fn width(&self) -> usize {
        self.helpers + 1
    }

    /// Calls `work(0)` to `work(tasks - 1)`, on the calling thread and on helpers,
    /// and returns when all have ended. A panic in a task is passed on to the caller.
    pub fn run(&self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        let job = Job::new(work);
        job.ready.store(tasks, Ordering::Release);
        job.complete.store(true, Ordering::Release);
        let shared = tasks > 1 && self.share(&job, tasks - 1);
        self.conclude(&job, shared, |work| work());
    }

    /// As [`Pool::run`], while the calling thread does something else first.
    pub fn run_beside(&self, tasks: usize, work: &(dyn Fn(usize) + Sync), first: impl FnOnce()) {
        let job = Job::new(work);
        job.ready.store(tasks, Ordering::Release);
        job.complete.store(true, Ordering::Release);
        let shared = tasks > 0 && self.share(&job, tasks);
        let done = catch_unwind(AssertUnwindSafe(first));
        self.conclude(&job, shared, |work| work());
        done.unwrap_or_else(|panic| resume_unwind(panic));
    }

    /// As [`Pool::run`], with tasks that become possible one after the other: `feed` runs
    /// on the calling thread first and publishes the next task by each call, saying whether
    /// more are to come; helpers take them at once. What is left is done by the caller
    /// too, inside `aside`.
    pub fn run_while(
        &self,
        work: &(dyn Fn(usize) + Sync),
        feed: impl FnOnce(&dyn Fn(bool)),
        aside: impl FnOnce(&mut (dyn FnMut() + Send)),
    ) {
        let job = Job::new(work);
        let shared = Cell::new(false);
        let fed = catch_unwind(AssertUnwindSafe(|| {
            feed(&|more| {
                let tasks = job.ready.fetch_add(1, Ordering::Release) + 1;
                if more && tasks == 1 {
                    shared.set(self.share(&job, self.helpers));
                }
            });
        }));
        job.complete.store(true, Ordering::Release);
        self.conclude(&job, shared.get(), aside);
        fed.unwrap_or_else(|panic| resume_unwind(panic));
    }

    /// Calls helpers to a job, unless the caller is better off alone.
    fn share(&self, job: &Arc<Job>, wanted: usize) -> bool {
        if self.helpers == 0 || self.is_alone() {
            return false;
        }
        self.started.call_once(|| self.start());
        self.shared.submit(job, self.helpers.min(wanted));
        true
    }

    /// Works on what is left of a job, and waits for the others.
    fn conclude(
        &self,
        job: &Arc<Job>,
        shared: bool,
        aside: impl FnOnce(&mut (dyn FnMut() + Send)),
    ) {
        let mut worked = Duration::ZERO;
        let began = Instant::now();
        let mut rest = || {
            job.work_until_claimed();
            worked = began.elapsed();
            if shared {
                self.shared.retire(job);
                job.wait();
            }
        };
        let left = catch_unwind(AssertUnwindSafe(|| aside(&mut rest)));
        job.wait();
        if shared && !self.linger.is_zero() {
            self.judge(worked, began.elapsed().saturating_sub(worked));
        }
        left.unwrap_or_else(|panic| resume_unwind(panic));
        if job.panicked.load(Ordering::Relaxed) {
            resume_unwind(Box::new("a task of the pool panicked"));
        }
    }
}

impl Shared {
    fn submit(&self, job: &Arc<Job>, wanted: usize) {
        self.queue.lock().expect("no panics under this lock").push_back(Arc::clone(job));
        self.submitted.fetch_add(1, Ordering::SeqCst);
        for _ in 0..wanted.min(self.sleeping.load(Ordering::SeqCst)) {
            self.arrived.notify_one();
        }
    }

    fn retire(&self, job: &Arc<Job>) {
        self.queue
            .lock()
            .expect("no panics under this lock")
            .retain(|queued| !Arc::ptr_eq(queued, job));
    }

    fn front(&self) -> Option<Arc<Job>> {
        let mut queue = self.queue.lock().expect("no panics under this lock");
        while queue.front().is_some_and(|job| job.is_claimed()) {
            queue.pop_front();
        }
        queue.front().cloned()
    }

    fn sleep(&self, seen: u64) {
        let mut queue = self.queue.lock().expect("no panics under this lock");
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        while queue.is_empty() && self.submitted.load(Ordering::SeqCst) == seen {
            queue = self.arrived.wait(queue).expect("no panics under this lock");
        }
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Job {
    /// Returns a job without tasks. Who makes one must not return before all of its tasks
    /// have ended: see [`Pool::conclude`].
    #[allow(unsafe_code)]
    fn new(work: &(dyn Fn(usize) + Sync)) -> Arc<Job> {
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
            caller: thread::current(),
        })
    }

    fn is_claimed(&self) -> bool {
        self.complete.load(Ordering::Acquire)
            && self.claimed.load(Ordering::Relaxed) >= self.ready.load(Ordering::Acquire)
    }

    #[allow(unsafe_code)]
    fn work_until_claimed(&self) {
        loop {
            let task = self.claimed.fetch_add(1, Ordering::AcqRel);
            if !self.comes(task) {
                return;
            }
            // SAFETY: task `task` is unfinished, so the caller still waits in `run_while`.
            let work = unsafe { &*self.work.0 };
            if catch_unwind(AssertUnwindSafe(|| work(task))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            self.finished.fetch_add(1, Ordering::AcqRel);
            if self.is_finished() {
                self.caller.unpark();
            }
        }
    }

    /// Waits for a task to be published; false if it never will be.
    fn comes(&self, task: usize) -> bool {
        let mut spins = 0_u32;
        while self.ready.load(Ordering::Acquire) <= task {
            if self.complete.load(Ordering::Acquire) {
                return self.ready.load(Ordering::Acquire) > task;
            }
            spins += 1;
            if spins < 4_000 {
                std::hint::spin_loop();
            } else {
                thread::yield_now(); // Who publishes may be waiting for this core.
            }
        }
        true
    }

    fn is_finished(&self) -> bool {
        self.complete.load(Ordering::Acquire)
            && self.finished.load(Ordering::Acquire) >= self.ready.load(Ordering::Acquire)
    }

    fn wait(&self) {
        let mut spins = 0_u32;
        while !self.is_finished() {
            spins += 1;
            if spins < 4_000 {
                std::hint::spin_loop();
            } else {
                thread::park_timeout(Duration::from_millis(10));
            }
        }
    }
}

fn help(shared: &Shared, linger: Duration) {
    loop {
        let seen = shared.submitted.load(Ordering::SeqCst);
        while let Some(job) = shared.front() {
            job.work_until_claimed();
        }
        let since = Instant::now();
        while shared.submitted.load(Ordering::Relaxed) == seen && since.elapsed() < linger {
            for _ in 0..32 {
                std::hint::spin_loop();
            }
        }
        if shared.submitted.load(Ordering::SeqCst) == seen {
            shared.sleep(seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_exactly_once() {
        for tasks in [0, 1, 2, 7, 1000] {
            let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
            Pool::blocking().run(tasks, &|k| {
                counts[k].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::blocking();
        let outcome = catch_unwind(|| pool.run(8, &|k| assert_ne!(k, 5)));
        assert!(outcome.is_err());
        pool.run(8, &|_| {});
    }

    #[test]
    fn runs_may_be_nested_and_concurrent() {
        let total = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    Pool::compute().run(10, &|_| {
                        Pool::compute().run(10, &|_| {
                            total.fetch_add(1, Ordering::Relaxed);
                        });
                    });
                });
            }
        });
        assert_eq!(total.into_inner(), 400);
    }
}
