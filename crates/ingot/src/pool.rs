//! Threads that help with one batch at a time.
//!
//! The caller of [`Pool::run`] works too, so a batch never waits for a thread to wake up: helpers
//! that come in time take a share, the others find nothing left. A batch calls no more helpers
//! than it has tasks for. Waking one costs as much as reading a batch of some hundred kilobytes, so
//! a helper of the compute pool looks for the next batch for some microseconds before it sleeps,
//! and a [`Balance`] tells when sharing does not pay.

mod balance;
mod job;
mod staff;
mod threads;

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use balance::Balance;
use job::Job;
use staff::Staff;
pub use threads::{asked_threads, set_threads};

use crate::process::PerProcess;

/// Helpers of the pool for calls that wait for a device.
const BLOCKING: usize = 63;

/// Helpers of the compute pool that look for the next batch at a time.
const LINGERING: usize = 2;

/// Helper threads of one process, each started when a batch first has a task for it.
pub struct Pool {
    staff: Arc<Staff>,
    balance: Balance,
}

impl Pool {
    /// Returns the pool for work that keeps a core busy: as many threads as [`set_threads`] or
    /// the environment variable `INGOT_THREADS` says, else one per core, the caller included.
    pub fn compute() -> Arc<Pool> {
        static POOL: PerProcess<Pool> = PerProcess::new();
        POOL.get(|| Pool::new(threads::first_threads() - 1, LINGERING))
    }

    /// Returns the pool for calls that wait for a device: more threads than cores.
    pub fn blocking() -> Arc<Pool> {
        static POOL: PerProcess<Pool> = PerProcess::new();
        POOL.get(|| Pool::new(BLOCKING, 0))
    }

    fn new(helpers: usize, lingering: usize) -> Pool {
        Pool { staff: Staff::new(helpers, lingering), balance: Balance::new() }
    }

    /// Returns how many threads can work on one batch, the caller included.
    pub fn width(&self) -> usize {
        self.staff.most() + 1
    }

    /// Sets how many threads can work on one batch, the caller included, from the next one on.
    pub fn resize(&self, width: NonZeroUsize) {
        self.staff.set_most(width.get() - 1);
    }

    /// Calls `work(0)` to `work(tasks - 1)`, on the calling thread and on helpers,
    /// and returns when all have ended. A panic in a task is passed on to the caller.
    pub fn run(&self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        self.share(tasks, work, tasks.saturating_sub(1), || {});
    }

    /// As [`Pool::run`], and returns the results in order.
    pub fn map<T: Send>(&self, tasks: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
        let done: Vec<Mutex<Option<T>>> = (0..tasks).map(|_| Mutex::new(None)).collect();
        self.run(tasks, &|k| {
            let value = work(k);
            *done[k].lock().expect("no panics under this lock") = Some(value);
        });
        let each = done.into_iter().map(|one| one.into_inner().expect("no panics under this lock"));
        each.map(|one| one.expect("every task has run")).collect()
    }

    /// As [`Pool::map`], with an item for each task.
    pub fn map_each<I: Send, T: Send>(
        &self,
        items: Vec<I>,
        work: &(dyn Fn(I) -> T + Sync),
    ) -> Vec<T> {
        let items: Vec<Mutex<Option<I>>> =
            items.into_iter().map(|item| Mutex::new(Some(item))).collect();
        self.map(items.len(), &|k| {
            let item = items[k].lock().expect("no panics under this lock").take();
            work(item.expect("every task runs once"))
        })
    }

    /// As [`Pool::run`], while the calling thread does something else first.
    pub fn run_beside(&self, tasks: usize, work: &(dyn Fn(usize) + Sync), first: impl FnOnce()) {
        self.share(tasks, work, tasks, first);
    }

    fn share(
        &self,
        tasks: usize,
        work: &(dyn Fn(usize) + Sync),
        helpers: usize,
        first: impl FnOnce(),
    ) {
        let job = Job::new(tasks, work);
        let mut helpers = helpers.min(self.staff.most());
        if helpers > 0 && self.staff.lingers() && !self.balance.shares() {
            helpers = 0;
        }
        let called = Instant::now();
        if helpers > 0 {
            self.staff.call(&job, helpers);
        }
        let calling = called.elapsed();
        let first = catch_unwind(AssertUnwindSafe(first));
        let began = Instant::now();
        let done = job.work();
        if helpers > 0 {
            let worked = began.elapsed();
            self.staff.withdraw(&job);
            job.wait();
            if self.staff.lingers() {
                let waited = began.elapsed().saturating_sub(worked);
                self.balance.note((helpers, calling), tasks - done, (done, worked), waited);
            }
        }
        first.unwrap_or_else(|panic| resume_unwind(panic));
        if job.has_panicked() {
            resume_unwind(Box::new("a task of the pool panicked"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    const MANY: usize = 63;

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
    fn a_panic_of_the_caller_waits_for_the_helpers() {
        let (pool, done) = (Pool::new(2, 0), AtomicUsize::new(0));
        let work = |_| {
            thread::sleep(Duration::from_millis(1));
            done.fetch_add(1, Ordering::Relaxed);
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.run_beside(8, &work, || panic!("the first part fails"));
        }));
        assert!(outcome.is_err());
        assert_eq!(done.into_inner(), 8);
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
        let pool = Pool::new(MANY, 0);
        for batch in 1..=100 {
            pool.run(3, &|_| thread::sleep(Duration::from_micros(100)));
            assert!(pool.staff.num_wakes() <= 2 * batch);
        }
    }

    #[test]
    fn idle_helpers_are_woken_before_new_ones_are_started() {
        let pool = Pool::new(MANY, 0);
        for _ in 0..20 {
            pool.run(3, &|_| {});
            pool.staff.settle();
        }
        assert!(pool.staff.num_threads() <= 2);
    }

    #[test]
    fn a_batch_with_many_shares_gets_all_helpers() {
        let pool = Pool::new(MANY, 0);
        let together = Barrier::new(MANY + 1);
        pool.run(MANY + 1, &|_| {
            together.wait();
        });
        assert_eq!((pool.staff.num_threads(), pool.staff.num_wakes()), (MANY, MANY as u64));
    }

    #[test]
    fn the_caller_of_a_pool_of_one_works_alone() {
        let pool = Pool::new(0, 0);
        let here = thread::current().id();
        for _ in 0..10 {
            pool.run(100, &|_| assert_eq!(thread::current().id(), here));
        }
        assert_eq!((pool.staff.num_threads(), pool.staff.num_wakes()), (0, 0));
    }

    #[test]
    fn another_size_holds_from_the_next_batch_on() {
        let width = |threads| NonZeroUsize::new(threads).unwrap();
        let pool = Pool::new(0, 0);
        for threads in [2, 8, 3, 1, 5] {
            pool.staff.settle();
            pool.resize(width(threads));
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            pool.run(40, &|_| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(1));
                now.fetch_sub(1, Ordering::SeqCst);
            });
            assert!(most.into_inner() <= threads);
        }
        assert!(pool.staff.num_threads() <= 7);
    }
}
