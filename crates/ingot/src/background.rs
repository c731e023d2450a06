//! Work that continues while the caller does something else.
//!
//! The threads stay: in the child of a fork the C library frees what the threads of the
//! parent had, and trips over those that had only just begun.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::limit::has_room_for_thread;
use crate::process::{self, PerProcess};

/// Tasks that are run at a time; more of them wait.
const THREADS: usize = 8;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

/// Work that was given to another thread, and will return a value. In the child of a fork there
/// is no such thread; a task that is dropped there is left alone.
pub struct Task<T> {
    answer: Option<Mutex<Receiver<thread::Result<T>>>>,
    generation: u64,
}

impl<T: Send + 'static> Task<T> {
    /// Gives `work` to another thread. `None` if the system has no thread to spare.
    pub fn spawn(work: impl FnOnce() -> T + Send + 'static) -> Option<Task<T>> {
        static QUEUE: PerProcess<Queue> = PerProcess::new();
        let queue = QUEUE.get(Queue::default);
        let (back, task) = sync_channel(1);
        let work = move || {
            // No caller waits for a task that was dropped.
            let _ = back.send(catch_unwind(AssertUnwindSafe(work)));
        };
        let task = Task { answer: Some(Mutex::new(task)), generation: process::generation() };
        queue.take(Box::new(work)).then_some(task)
    }

    /// Waits for the value. A panic of the work is passed on.
    pub fn wait(mut self) -> T {
        let answer = self.answer.take().expect("it is taken once");
        let answer = answer.into_inner().expect("no panics under this lock");
        let outcome = answer.recv().expect("every task answers");
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        // A channel has locks of its own, which the thread may have held at the fork.
        if self.generation != process::generation() {
            std::mem::forget(self.answer.take());
        }
    }
}

impl Queue {
    fn take(self: &Arc<Self>, work: Work) -> bool {
        let mut state = self.state.lock().expect("no panics under this lock");
        let is_short = state.waiting.len() >= state.idle && state.threads < THREADS;
        if is_short && has_room_for_thread() {
            let queue = Arc::clone(self);
            let thread = thread::Builder::new().name("ingot-background".to_owned());
            state.threads += usize::from(thread.spawn(move || queue.run()).is_ok());
        }
        if state.threads == 0 {
            return false;
        }
        state.waiting.push_back(work);
        self.arrived.notify_one();
        true
    }

    fn run(&self) {
        let mut state = self.state.lock().expect("no panics under this lock");
        loop {
            if let Some(work) = state.waiting.pop_front() {
                drop(state);
                work();
                state = self.state.lock().expect("no panics under this lock");
            } else {
                state.idle += 1;
                state = self.arrived.wait(state).expect("no panics under this lock");
                state.idle -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_return_their_own_values() {
        let sent: Vec<_> = (0..100).map(|k| Task::spawn(move || k * k).unwrap()).collect();
        for (k, task) in sent.into_iter().enumerate() {
            assert_eq!(task.wait(), k * k);
        }
    }

    #[test]
    fn a_panic_comes_back_and_the_threads_live_on() {
        let task = Task::spawn(|| panic!("as asked")).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| task.wait())).is_err());
        assert_eq!(Task::spawn(|| 7).unwrap().wait(), 7);
    }
}
