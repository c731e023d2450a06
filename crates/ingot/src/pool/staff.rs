//! The helper threads of a pool.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use super::job::Job;
use crate::limit::has_room_for_thread;

/// Helper threads, each started when a job first needs it.
pub struct Staff {
    desk: Mutex<Desk>,
    called: Condvar,
    /// Helpers that may work at a time.
    most: AtomicUsize,
}

#[derive(Default)]
struct Desk {
    /// Each job once per helper that it called and that has not come yet.
    calls: VecDeque<Arc<Job>>,
    busy: usize,
    threads: usize,
    /// Whether the system refused to start a thread. It is not asked again.
    exhausted: bool,
    /// How often a helper was started or woken.
    wakes: u64,
}

impl Staff {
    /// Returns a staff of at most `most` helpers.
    pub fn new(most: usize) -> Arc<Staff> {
        let most = AtomicUsize::new(most);
        Arc::new(Staff { desk: Mutex::default(), called: Condvar::new(), most })
    }

    /// Returns how many helpers may work at a time.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Sets how many helpers may work at a time. Surplus helpers finish their current job.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Calls helpers to a job, starting threads if too few are idle.
    pub fn call(self: &Arc<Self>, job: &Arc<Job>, helpers: usize) {
        let (mut woken, mut new) = (0, 0);
        let mut desk = self.desk();
        for _ in 0..helpers {
            desk.calls.push_back(Arc::clone(job));
            if desk.calls.len() <= desk.threads - desk.busy {
                woken += 1;
            } else if desk.threads < self.most() && !desk.exhausted {
                desk.threads += 1;
                new += 1;
            } else {
                continue;
            }
            desk.wakes += 1;
        }
        let first = desk.threads - new;
        drop(desk);
        (0..woken).for_each(|_| self.called.notify_one());
        (first..first + new).for_each(|number| self.start(number));
    }

    /// Withdraws the calls of a job that no helper has answered.
    pub fn withdraw(&self, job: &Arc<Job>) {
        self.desk().calls.retain(|called| !Arc::ptr_eq(called, job));
    }

    /// Starts a helper. If the system has no thread to spare, the callers work more.
    fn start(self: &Arc<Self>, number: usize) {
        let staff = Arc::clone(self);
        let helper = thread::Builder::new().name(format!("ingot-{number}")).stack_size(512 << 10);
        if !has_room_for_thread() || helper.spawn(move || staff.help()).is_err() {
            let mut desk = self.desk();
            desk.threads -= 1;
            desk.exhausted = true;
        }
    }

    fn help(&self) {
        let mut desk = self.desk();
        loop {
            let job = if desk.busy < self.most() { desk.next_call() } else { None };
            let Some(job) = job else {
                desk = self.called.wait(desk).expect("no panics under this lock");
                continue;
            };
            desk.busy += 1;
            drop(desk);
            job.work();
            drop(job);
            desk = self.desk();
            desk.busy -= 1;
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().expect("no panics under this lock")
    }
}

impl Desk {
    fn next_call(&mut self) -> Option<Arc<Job>> {
        while let Some(job) = self.calls.pop_front() {
            if !job.is_claimed() {
                return Some(job);
            }
        }
        None
    }
}

#[cfg(test)]
impl Staff {
    /// Returns how many helpers were started.
    pub fn num_threads(&self) -> usize {
        self.desk().threads
    }

    /// Returns how often helpers were started or woken.
    pub fn num_wakes(&self) -> u64 {
        self.desk().wakes
    }

    /// Waits until no helper works.
    pub fn settle(&self) {
        while self.desk().busy > 0 {
            thread::yield_now();
        }
    }
}
