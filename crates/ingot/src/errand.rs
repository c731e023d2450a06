//! Work that goes on while the caller does something else.
//!
//! The threads stay: in the child of a fork the C library frees what the threads of the
//! parent had, and trips over those that had only just begun.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::process::PerProcess;

/// Errands that are run at a time; more of them wait.
const THREADS: usize = 8;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Office {
    desk: Mutex<Desk>,
    arrived: Condvar,
}

#[derive(Default)]
struct Desk {
    queue: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

/// An errand that was sent, and will come back with a value.
pub struct Errand<T>(Mutex<Receiver<thread::Result<T>>>);

impl<T: Send + 'static> Errand<T> {
    /// Sends `work` to another thread. `None` if the system has no thread to spare.
    pub fn send(work: impl FnOnce() -> T + Send + 'static) -> Option<Errand<T>> {
        static OFFICE: PerProcess<Office> = PerProcess::new();
        let office = OFFICE.get(Office::default);
        let (back, errand) = sync_channel(1);
        let work = move || {
            // Nobody waits for an errand that was dropped.
            let _ = back.send(catch_unwind(AssertUnwindSafe(work)));
        };
        office.take(Box::new(work)).then_some(Errand(Mutex::new(errand)))
    }

    /// Waits for the value. A panic of the work is passed on.
    pub fn wait(self) -> T {
        let errand = self.0.into_inner().expect("no panics under this lock");
        let outcome = errand.recv().expect("every errand answers");
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Office {
    fn take(self: &Arc<Self>, work: Work) -> bool {
        let mut desk = self.desk.lock().expect("no panics under this lock");
        if desk.queue.len() >= desk.idle && desk.threads < THREADS {
            let office = Arc::clone(self);
            let thread = thread::Builder::new().name("ingot-errand".to_owned());
            desk.threads += usize::from(thread.spawn(move || office.run()).is_ok());
        }
        if desk.threads == 0 {
            return false;
        }
        desk.queue.push_back(work);
        self.arrived.notify_one();
        true
    }

    fn run(&self) {
        let mut desk = self.desk.lock().expect("no panics under this lock");
        loop {
            if let Some(work) = desk.queue.pop_front() {
                drop(desk);
                work();
                desk = self.desk.lock().expect("no panics under this lock");
            } else {
                desk.idle += 1;
                desk = self.arrived.wait(desk).expect("no panics under this lock");
                desk.idle -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errands_come_back_with_their_own_values() {
        let sent: Vec<_> = (0..100).map(|k| Errand::send(move || k * k).unwrap()).collect();
        for (k, errand) in sent.into_iter().enumerate() {
            assert_eq!(errand.wait(), k * k);
        }
    }

    #[test]
    fn a_panic_comes_back_and_the_threads_live_on() {
        let errand = Errand::send(|| panic!("as asked")).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| errand.wait())).is_err());
        assert_eq!(Errand::send(|| 7).unwrap().wait(), 7);
    }
}
