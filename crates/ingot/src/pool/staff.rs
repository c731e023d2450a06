//! The helper threads of a pool: who works, who looks for work, and who sleeps.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::job::{Job, spin};

/// How long a helper looks for the next batch before it goes to sleep. A thread that sleeps
/// comes too late for a batch of microseconds.
const LINGER: Duration = Duration::from_micros(60);

/// Helper threads, each started when a job first calls for it.
pub struct Staff {
    desk: Mutex<Desk>,
    /// Calls ever made: lets a lingering helper see news without the lock.
    calls_made: AtomicU64,
    /// Helpers that may be awake at a time.
    most: AtomicUsize,
    /// Helpers that may look for the next batch at a time; the others sleep at once.
    lingering_max: usize,
}

#[derive(Default)]
struct Desk {
    /// Each job as often as it has called for a helper that has not come.
    calls: VecDeque<Arc<Job>>,
    /// Who fell asleep last is woken first, so that the same few helpers work.
    asleep: Vec<Arc<Sleeper>>,
    lingering: usize,
    threads: usize,
    /// Whether the system has refused a thread. It is not asked again.
    exhausted: bool,
    /// How often a helper was started or woken.
    wakes: u64,
}

struct Sleeper {
    thread: Thread,
    is_called: AtomicBool,
}

impl Staff {
    /// Returns a staff of at most so many helpers, of which so many may linger.
    pub fn new(most: usize, lingering_max: usize) -> Arc<Staff> {
        Arc::new(Staff {
            desk: Mutex::default(),
            calls_made: AtomicU64::new(0),
            most: AtomicUsize::new(most),
            lingering_max,
        })
    }

    /// Returns how many helpers may be awake at a time.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Sets how many helpers may be awake at a time. Those that are too many sleep as soon as
    /// they have done what they work on.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Returns whether helpers look for the next batch before they sleep.
    pub fn lingers(&self) -> bool {
        self.lingering_max > 0
    }

    /// Returns how many helpers were started.
    pub fn num_threads(&self) -> usize {
        self.desk().threads
    }

    /// Returns how often helpers were started or woken.
    pub fn num_wakes(&self) -> u64 {
        self.desk().wakes
    }

    /// Returns how many helpers do not sleep.
    #[cfg(test)]
    pub fn num_awake(&self) -> usize {
        self.desk().awake()
    }

    /// Returns how many helpers look for the next batch.
    #[cfg(test)]
    pub fn num_lingering(&self) -> usize {
        self.desk().lingering
    }

    /// Calls so many helpers to a job: those that linger, then those that sleep, then new ones.
    pub fn call(self: &Arc<Self>, job: &Arc<Job>, helpers: usize) {
        job.expect(helpers);
        let (most, mut woken, mut new) = (self.most(), Vec::new(), 0);
        let mut desk = self.desk();
        for _ in 0..helpers {
            desk.calls.push_back(Arc::clone(job));
            if desk.calls.len() <= desk.lingering || desk.awake() >= most {
                continue;
            }
            if let Some(sleeper) = desk.asleep.pop() {
                woken.push(sleeper);
            } else if desk.exhausted {
                continue;
            } else {
                desk.threads += 1;
                new += 1;
            }
            desk.wakes += 1;
        }
        self.calls_made.fetch_add(1, Ordering::Release);
        let first_new = desk.threads - new;
        drop(desk);
        woken.iter().for_each(|sleeper| sleeper.wake());
        (first_new..first_new + new).for_each(|number| self.start(number));
    }

    /// Takes back the calls of a job that nobody has followed.
    pub fn take_back(&self, job: &Arc<Job>) {
        self.desk().calls.retain(|called| !Arc::ptr_eq(called, job));
    }

    /// Starts a helper. If the system has no thread to spare, the callers work more.
    fn start(self: &Arc<Self>, number: usize) {
        let staff = Arc::clone(self);
        let helper = thread::Builder::new().name(format!("ingot-{number}")).stack_size(512 << 10);
        if helper.spawn(move || staff.help()).is_err() {
            let mut desk = self.desk();
            desk.threads -= 1;
            desk.exhausted = true;
        }
    }

    fn help(&self) {
        let this = Sleeper { thread: thread::current(), is_called: AtomicBool::new(false) };
        let this = Arc::new(this);
        loop {
            self.next(&this).help();
        }
    }

    /// Waits for a call.
    fn next(&self, this: &Arc<Sleeper>) -> Arc<Job> {
        let mut since = Instant::now();
        let mut desk = self.desk();
        loop {
            let is_wanted = desk.awake() <= self.most();
            if is_wanted && let Some(job) = desk.next_call() {
                return job;
            }
            let left = LINGER.saturating_sub(since.elapsed());
            if is_wanted && desk.lingering < self.lingering_max && !left.is_zero() {
                let seen = self.calls_made.load(Ordering::Relaxed);
                desk.lingering += 1;
                drop(desk);
                spin(left, || self.calls_made.load(Ordering::Acquire) != seen);
                desk = self.desk();
                desk.lingering -= 1;
            } else {
                desk.asleep.push(Arc::clone(this));
                drop(desk);
                this.sleep();
                since = Instant::now();
                desk = self.desk();
            }
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().expect("no panics under this lock")
    }
}

impl Desk {
    fn awake(&self) -> usize {
        self.threads - self.asleep.len()
    }

    fn next_call(&mut self) -> Option<Arc<Job>> {
        while let Some(job) = self.calls.pop_front() {
            if !job.is_claimed() {
                return Some(job);
            }
        }
        None
    }
}

impl Sleeper {
    fn sleep(&self) {
        while !self.is_called.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }

    fn wake(&self) {
        self.is_called.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
