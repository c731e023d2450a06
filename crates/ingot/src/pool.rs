//! Threads that help with one batch at a time.
//!
//! The caller of [`Pool::run`] works too, so a batch never waits for a thread to
//! wake up: helpers that come in time take a share, the others find nothing left.
//! A batch calls no more helpers than it has tasks for, and nothing spins for long.

mod job;
mod staff;
mod threads;

use std::cell::{Cell, OnceCell};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use job::Job;
use staff::Staff;
pub use threads::{asked_threads, set_threads};

use crate::process::PerProcess;

/// Helpers of the compute pool that look for the next batch at a time.
const LINGERING: usize = 2;

/// Helpers of the pool for calls that wait for a device.
const BLOCKING: usize = 63;

/// Helper threads of one process, each started when a batch first has a task for it.
pub struct Pool {
    staff: Arc<Staff>,
    /// Batches that the caller is to work on alone.
    alone: AtomicU32,
    /// Nanoseconds that sharing has gained lately.
    gained: AtomicI64,
}

/// Sharing a batch gains the time in which the caller would have done what helpers did. It
/// loses what it takes to call them, and what the caller then waits for one that was kept from
/// its core. When the losses outweigh the gains, something else wants the cores or batches are
/// too small, and the caller works alone for this many batches.
const ALONE: u32 = 1024;

/// What sharing is credited with at the start, and can gather at most, in nanoseconds.
const CREDIT: i64 = 4_000_000;

impl Pool {
    /// Returns the pool for work that keeps a core busy: as many threads as [`set_threads`] or
    /// the environment variable `INGOT_THREADS` says, else one a core, the caller among them.
    pub fn compute() -> Arc<Pool> {
        static POOL: PerProcess<Pool> = PerProcess::new();
        POOL.get(|| Pool::new(threads::first_threads() - 1, LINGERING))
    }

    /// Returns the pool for calls that wait for a device: more threads than cores.
    pub fn blocking() -> Arc<Pool> {
        static POOL: PerProcess<Pool> = PerProcess::new();
        POOL.get(|| Pool::new(BLOCKING, 0))
    }

    fn new(helpers: usize, lingering_max: usize) -> Pool {
        Pool {
            staff: Staff::new(helpers, lingering_max),
            alone: AtomicU32::new(0),
            gained: AtomicI64::new(CREDIT),
        }
    }

    /// Returns how many threads can work on one batch, the caller included.
    pub fn width(&self) -> usize {
        self.staff.most() + 1
    }

    /// Sets how many threads can work on one batch, the caller included, from the next one on.
    pub fn resize(&self, width: NonZeroUsize) {
        self.staff.set_most(width.get() - 1);
    }

    /// Returns how many helpers were started.
    pub fn num_helpers(&self) -> usize {
        self.staff.num_threads()
    }

    /// Returns how often helpers were started or woken.
    pub fn num_wakes(&self) -> u64 {
        self.staff.num_wakes()
    }

    /// Calls `work(0)` to `work(tasks - 1)`, on the calling thread and on helpers,
    /// and returns when all have ended. A panic in a task is passed on to the caller.
    pub fn run(&self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        let job = Job::new(work);
        job.publish(tasks);
        job.complete();
        let sharing = (tasks > 1 && self.shares()).then(Sharing::begin);
        if let Some(sharing) = &sharing {
            sharing.call(&self.staff, &job, self.staff.most().min(tasks - 1));
        }
        self.conclude(&job, sharing, |work| work());
    }

    /// As [`Pool::run`], and returns what each call has returned, in order.
    pub fn map<T: Send>(&self, tasks: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
        let done: Vec<Mutex<Option<T>>> = (0..tasks).map(|_| Mutex::new(None)).collect();
        self.run(tasks, &|k| {
            let value = work(k);
            *done[k].lock().expect("no panics under this lock") = Some(value);
        });
        let each = done.into_iter().map(|one| one.into_inner().expect("no panics under this lock"));
        each.map(|one| one.expect("every task has run")).collect()
    }

    /// As [`Pool::run`], while the calling thread does something else first.
    pub fn run_beside(&self, tasks: usize, work: &(dyn Fn(usize) + Sync), first: impl FnOnce()) {
        let job = Job::new(work);
        job.publish(tasks);
        job.complete();
        let sharing = (tasks > 0 && self.shares()).then(Sharing::begin);
        if let Some(sharing) = &sharing {
            sharing.call(&self.staff, &job, self.staff.most().min(tasks));
        }
        let done = catch_unwind(AssertUnwindSafe(first));
        self.conclude(&job, sharing, |work| work());
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
        let sharing = OnceCell::new();
        let fed = catch_unwind(AssertUnwindSafe(|| {
            feed(&|more| {
                let tasks = job.publish(1);
                if more && tasks == 1 && self.shares() {
                    sharing.get_or_init(Sharing::begin);
                }
                let Some(sharing) = sharing.get().filter(|_| more) else { return };
                if job.num_called() < self.staff.most() && job.is_short_of_helpers() {
                    sharing.call(&self.staff, &job, 1);
                }
            });
        }));
        job.complete();
        self.conclude(&job, sharing.into_inner(), aside);
        fed.unwrap_or_else(|panic| resume_unwind(panic));
    }

    /// Returns whether helpers are to be called to a batch: the caller may be better off alone.
    fn shares(&self) -> bool {
        self.staff.most() > 0 && !self.is_alone()
    }

    fn is_alone(&self) -> bool {
        let left = self.alone.load(Ordering::Relaxed);
        if left > 0 {
            self.alone.store(left - 1, Ordering::Relaxed);
        }
        left > 0
    }

    /// Updates the estimate of what sharing a batch gains, in nanoseconds.
    fn judge(&self, gain: i64) {
        let gained = self.gained.load(Ordering::Relaxed).saturating_add(gain).min(CREDIT);
        if gained < 0 {
            self.alone.store(ALONE, Ordering::Relaxed);
        }
        self.gained.store(if gained < 0 { CREDIT / 4 } else { gained }, Ordering::Relaxed);
    }

    /// Works on what is left of a job, and waits for the others.
    fn conclude(
        &self,
        job: &Arc<Job>,
        sharing: Option<Sharing>,
        aside: impl FnOnce(&mut (dyn FnMut() + Send)),
    ) {
        let (mut done, mut worked, mut waited) = (0, Duration::ZERO, Duration::ZERO);
        let began = Instant::now();
        let is_shared = sharing.is_some();
        let mut rest = || {
            done = job.work();
            worked = began.elapsed();
            if is_shared {
                self.staff.take_back(job);
                job.wait();
                waited = began.elapsed().saturating_sub(worked);
            }
        };
        let left = catch_unwind(AssertUnwindSafe(|| aside(&mut rest)));
        job.wait();
        if let Some(sharing) = sharing
            && self.staff.lingers()
        {
            self.judge(sharing.gain(began, job.num_tasks() - done, done, worked, waited));
        }
        left.unwrap_or_else(|panic| resume_unwind(panic));
        if job.has_panicked() {
            resume_unwind(Box::new("a task of the pool panicked"));
        }
    }
}

/// What a batch that is shared has taken so far.
struct Sharing {
    began: Instant,
    called: Cell<usize>,
    calling: Cell<Duration>,
}

impl Sharing {
    fn begin() -> Sharing {
        Sharing { began: Instant::now(), called: Cell::new(0), calling: Cell::new(Duration::ZERO) }
    }

    fn call(&self, staff: &Arc<Staff>, job: &Arc<Job>, helpers: usize) {
        let since = Instant::now();
        staff.call(job, helpers);
        self.called.set(self.called.get() + helpers);
        self.calling.set(self.calling.get() + since.elapsed());
    }

    /// Returns how many nanoseconds sharing has gained: helpers did `helped` tasks while the
    /// caller published them until `fed`, did `done` tasks for `worked` and then `waited`.
    fn gain(
        &self,
        fed: Instant,
        helped: usize,
        done: usize,
        worked: Duration,
        waited: Duration,
    ) -> i64 {
        let saved = if done == 0 {
            fed - self.began
        } else {
            worked.mul_f64((helped as f64 / done as f64).min(self.called.get() as f64))
        };
        saved.as_nanos() as i64 - waited.as_nanos() as i64 - self.calling.get().as_nanos() as i64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    const MANY: usize = 63;

    /// Runs so many tasks that become possible one after the other.
    fn feed(pool: &Pool, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        let feed = |publish: &dyn Fn(bool)| (1..=tasks).for_each(|k| publish(k < tasks));
        pool.run_while(work, feed, |rest| rest());
    }

    /// Waits until all helpers of a pool sleep.
    fn settle(pool: &Pool) {
        while pool.staff.num_awake() > 0 {
            thread::yield_now();
        }
    }

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

    #[test]
    fn a_batch_wakes_no_more_helpers_than_it_has_shares_for() {
        let pool = Pool::new(MANY, LINGERING);
        for batch in 1..=100 {
            pool.run(3, &|_| thread::sleep(Duration::from_micros(100)));
            assert!(pool.num_wakes() <= 2 * batch);
        }
        let pool = Pool::new(MANY, LINGERING);
        for batch in 1..=100 {
            feed(&pool, 3, &|_| thread::sleep(Duration::from_micros(100)));
            assert!(pool.num_wakes() <= 2 * batch);
        }
    }

    #[test]
    fn the_helpers_that_slept_last_are_woken_again() {
        let pool = Pool::new(MANY, LINGERING);
        for _ in 0..20 {
            feed(&pool, 3, &|_| {});
            settle(&pool);
        }
        assert!(pool.num_helpers() <= 2);
    }

    #[test]
    fn a_batch_with_many_shares_gets_all_helpers() {
        let pool = Pool::new(MANY, LINGERING);
        let together = std::sync::Barrier::new(MANY + 1);
        pool.run(MANY + 1, &|_| {
            together.wait();
        });
        assert_eq!((pool.num_helpers(), pool.num_wakes()), (MANY, MANY as u64));
    }

    #[test]
    fn few_helpers_linger() {
        let pool = Pool::new(MANY, LINGERING);
        for _ in 0..20 {
            pool.run(MANY + 1, &|_| {
                thread::sleep(Duration::from_micros(100));
                assert!(pool.staff.num_lingering() <= LINGERING);
            });
        }
        settle(&pool);
        assert_eq!(pool.staff.num_lingering(), 0);
    }

    #[test]
    fn the_caller_of_a_pool_of_one_works_alone() {
        let pool = Pool::new(0, LINGERING);
        let here = thread::current().id();
        for _ in 0..10 {
            pool.run(100, &|_| assert_eq!(thread::current().id(), here));
            feed(&pool, 100, &|_| assert_eq!(thread::current().id(), here));
        }
        assert_eq!((pool.num_helpers(), pool.num_wakes()), (0, 0));
    }

    #[test]
    fn another_size_holds_from_the_next_batch_on() {
        let width = |threads| NonZeroUsize::new(threads).unwrap();
        let pool = Pool::new(0, LINGERING);
        for threads in [2, 8, 3, 1, 5] {
            settle(&pool);
            pool.resize(width(threads));
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            pool.run(40, &|_| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(1));
                now.fetch_sub(1, Ordering::SeqCst);
            });
            assert!(most.into_inner() <= threads);
        }
        assert!(pool.num_helpers() <= 7);
    }

    #[test]
    fn a_helper_leaves_a_batch_that_is_fed_slowly() {
        let pool = Pool::new(1, LINGERING);
        let count = AtomicUsize::new(0);
        let feed = |publish: &dyn Fn(bool)| {
            for k in 1..=3 {
                publish(k < 3);
                settle(&pool);
            }
        };
        let work = |_| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        pool.run_while(&work, feed, |rest| rest());
        assert_eq!(count.into_inner(), 3);
        assert_eq!((pool.num_helpers(), pool.num_wakes()), (1, 2));
    }
}
