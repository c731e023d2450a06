//! The processor time that a test takes, which does not depend on what else the machine does.

use std::time::Duration;

/// Calls `run` and returns the processor time that all threads of this process took meanwhile.
pub fn cpu_time_of<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let before = now();
    let outcome = run();
    (outcome, now() - before)
}

fn now() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(code, 0, "every Linux has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
