//! Which process this is: threads and rings belong to one, and a fork makes another.

use std::cell::RefCell;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Once, PoisonError, RwLock, RwLockWriteGuard};

static GENERATION: AtomicU64 = AtomicU64::new(0);
static REGISTER: Once = Once::new();

/// Returns a number that changes in the child of a fork.
///
/// Whatever belongs to one process (threads, rings, locks) is kept with the
/// generation it was made in, and is abandoned, not dropped, when the number
/// has changed. Costs one atomic load.
pub fn generation() -> u64 {
    REGISTER.call_once(register);
    GENERATION.load(Ordering::Relaxed)
}

/// Read-locked while a file is opened, write-locked during a fork.
static OPENING: RwLock<()> = RwLock::new(());

thread_local! {
    /// The write lock of the thread that forks.
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Calls `work` while no other thread can fork this process. It must be short, and must neither
/// wait for the thread that forks nor call this again.
///
/// A fork copies the table of descriptors first and the memory later. A file that is opened in
/// between, with the number of one that was just closed, would be that other file in the child.
pub fn without_fork<T>(work: impl FnOnce() -> T) -> T {
    generation();
    let _guard = OPENING.read().unwrap_or_else(PoisonError::into_inner);
    work()
}

#[allow(unsafe_code)]
fn register() {
    extern "C" fn prepare() {
        let _ = FORKING.try_with(|held| {
            let guard = OPENING.write().unwrap_or_else(PoisonError::into_inner);
            *held.borrow_mut() = Some(guard);
        });
    }
    extern "C" fn done() {
        let _ = FORKING.try_with(|held| held.borrow_mut().take());
    }
    extern "C" fn forked() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        give_up_locks();
        done();
    }
    // SAFETY: the handlers use atomics, a lock that the forking thread itself holds, and system
    // calls that are safe in the child of a fork.
    unsafe { libc::pthread_atfork(Some(prepare), Some(done), Some(forked)) };
}

/// Descriptors whose locks belong to this process alone; -1 marks a free slot.
static OWN: [AtomicI32; 1024] = [const { AtomicI32::new(-1) }; 1024];

/// A descriptor that children of this process do not share, although they have its number: in
/// a child it leads to the null device. A lock that is taken through it ends with this process.
///
/// There is room for 1,024 of them; more are shared as usual.
#[derive(Debug)]
pub struct OwnDescriptor {
    slot: Option<usize>,
}

impl OwnDescriptor {
    /// Keeps the descriptor of a file from children until this is dropped, which must be
    /// before the file is closed.
    pub fn of(file: &std::fs::File) -> OwnDescriptor {
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(file);
        generation();
        let slot = OWN.iter().position(|slot| {
            slot.compare_exchange(-1, descriptor, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        OwnDescriptor { slot }
    }
}

impl Drop for OwnDescriptor {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            OWN[slot].store(-1, Ordering::Release);
        }
    }
}

#[allow(unsafe_code)]
fn give_up_locks() {
    let mut null = -1;
    for slot in &OWN {
        let descriptor = slot.load(Ordering::Acquire);
        if descriptor < 0 {
            continue;
        }
        // SAFETY: these system calls are safe in the child of a fork; the descriptor stays
        // valid, and belongs to a file whose users refuse to work in a child.
        unsafe {
            if null < 0 {
                null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            }
            if null >= 0 && libc::dup2(null, descriptor) >= 0 {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
    if null >= 0 {
        // SAFETY: this function has opened it.
        unsafe { libc::close(null) };
    }
}

/// A value created once per process, and again in the child of a fork. Takes no lock that a thread
/// of the parent could have held at the fork; the parent's value is leaked in the child.
pub struct PerProcess<T>(AtomicPtr<(u64, Arc<T>)>);

impl<T> PerProcess<T> {
    /// Returns an empty place.
    pub const fn new() -> Self {
        PerProcess(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Returns the value of this process, creating it if necessary. Threads that race may each
    /// create one; one of them is kept.
    #[allow(unsafe_code)]
    pub fn get(&self, make: impl Fn() -> T) -> Arc<T> {
        let generation = generation();
        loop {
            let current = self.0.load(Ordering::Acquire);
            // SAFETY: a pointer that was stored here is never freed.
            if let Some((made, kept)) = unsafe { current.as_ref() }
                && *made == generation
            {
                return Arc::clone(kept);
            }
            let made = Box::into_raw(Box::new((generation, Arc::new(make()))));
            if self.0.compare_exchange(current, made, Ordering::AcqRel, Ordering::Acquire).is_err()
            {
                // SAFETY: the pointer came from a box and was not stored.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        PerProcess::new()
    }
}
