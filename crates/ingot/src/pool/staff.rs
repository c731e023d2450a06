//! The helper threads of a pool.

use std::collections::VecDeque;
use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::job::Job;
use crate::limit::has_room_for_thread;

/// How long a helper looks for the next job before it sleeps.
const LINGER: Duration = Duration::from_micros(50);

/// Helper threads, each started when a job first needs it.
pub struct Staff {
    desk: Mutex<Desk>,
    called: Condvar,
    /// Helpers that may work at a time.
    most: AtomicUsize,
    /// Helpers that may look for the next job at a time.
    lingering_max: usize,
    /// Calls that wait for a helper, for those that look for one without the lock.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct Desk {
    /// Each job once per helper that it called and that has not come yet.
    calls: VecDeque<Arc<Job>>,
    busy: usize,
    /// Helpers that look for the next job: they need not be woken.
    lingering: usize,
    threads: usize,
    /// Whether the system refused to start a thread. It is not asked again.
    exhausted: bool,
    /// How often a helper was started or woken.
    wakes: u64,
}

impl Staff {
    /// Returns a staff of at most `most` helpers, `lingering_max` of which look for the next job
    /// for a while before they sleep.
    pub fn new(most: usize, lingering_max: usize) -> Arc<Staff> {
        Arc::new(Staff {
            desk: Mutex::default(),
            called: Condvar::new(),
            most: AtomicUsize::new(most),
            lingering_max,
            waiting: AtomicUsize::new(0),
        })
    }

    /// Returns whether helpers look for the next job before they sleep.
    pub fn lingers(&self) -> bool {
        self.lingering_max > 0
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
            if desk.calls.len() <= desk.lingering {
                continue;
            }
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
        self.waiting.store(desk.calls.len(), Ordering::Release);
        drop(desk);
        (0..woken).for_each(|_| self.called.notify_one());
        (first..first + new).for_each(|number| self.start(number));
    }

    /// Withdraws the calls of a job that no helper has answered.
    pub fn withdraw(&self, job: &Arc<Job>) {
        let mut desk = self.desk();
        desk.calls.retain(|called| !Arc::ptr_eq(called, job));
        self.waiting.store(desk.calls.len(), Ordering::Relaxed);
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
        let (mut desk, mut has_worked) = (self.desk(), false);
        loop {
            let job = if desk.busy < self.most() { desk.next_call() } else { None };
            self.waiting.store(desk.calls.len(), Ordering::Relaxed);
            let Some(job) = job else {
                let lingers = has_worked && desk.lingering < self.lingering_max;
                has_worked = false;
                desk = if lingers { self.linger(desk) } else { self.sleep(desk) };
                continue;
            };
            has_worked = true;
            desk.busy += 1;
            drop(desk);
            job.work();
            drop(job);
            desk = self.desk();
            desk.busy -= 1;
        }
    }

    fn sleep<'d>(&self, desk: MutexGuard<'d, Desk>) -> MutexGuard<'d, Desk> {
        self.called.wait(desk).expect("no panics under this lock")
    }

    /// Looks for a call for a while. Whoever comes back looks at the desk before it sleeps.
    fn linger<'d>(&'d self, mut desk: MutexGuard<'d, Desk>) -> MutexGuard<'d, Desk> {
        desk.lingering += 1;
        drop(desk);
        let since = Instant::now();
        while self.waiting.load(Ordering::Acquire) == 0 && since.elapsed() < LINGER {
            hint::spin_loop();
        }
        let mut desk = self.desk();
        desk.lingering -= 1;
        desk
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
