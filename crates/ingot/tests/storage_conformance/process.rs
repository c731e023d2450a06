//! Children of a fork.

#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    Killed(i32),
}

pub struct Child(libc::pid_t);

/// Runs `work` in the child of a fork, which ends with the number it returns.
pub fn fork(work: impl FnOnce() -> i32) -> Child {
    // SAFETY: the child runs library code that must be usable after a fork, which
    // is what is tested, and ends without returning to the test harness.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            libc::alarm(60);
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            libc::_exit(code.unwrap_or(101));
        }
        Child(child)
    }
}

impl Child {
    pub fn wait(self) -> Ended {
        let mut status = 0;
        // SAFETY: the child is ours and was not waited for.
        assert_eq!(unsafe { libc::waitpid(self.0, &mut status, 0) }, self.0);
        if libc::WIFSIGNALED(status) {
            Ended::Killed(libc::WTERMSIG(status))
        } else {
            Ended::Exited(libc::WEXITSTATUS(status))
        }
    }
}
