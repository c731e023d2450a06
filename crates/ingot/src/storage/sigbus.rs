//! Page faults that the device or a cut file cannot serve, survived.
//!
//! Reading a mapped page that is no longer there raises SIGBUS, which kills the
//! process. Mappings that are registered here get a page of zeros in its place
//! and are marked as damaged. Every other SIGBUS goes where it would have gone.
//!
//! Everything the handler touches is an atomic, and it calls nothing but system
//! calls, so it may run at any point of any thread, and in the child of a fork.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use libc::{c_int, c_void, siginfo_t};

#[cfg(target_os = "linux")]
use libc::__errno_location as errno_location;
#[cfg(target_os = "macos")]
use libc::__error as errno_location;

/// As many mappings as a process has, unless the system is told otherwise.
const SLOTS: usize = 1 << 16;

/// A later handler that sees the same address this often without mending it, never will.
const REPEATS_MAX: u32 = 16;

static TABLE: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];
/// Slots at and after this place of the table were never taken.
static TABLE_END: AtomicUsize = AtomicUsize::new(0);
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The handler that was there before ours, and the one that replaced ours later.
static FIRST: AtomicU64 = AtomicU64::new(NO_HANDLER);
static LATER: AtomicU64 = AtomicU64::new(NO_HANDLER);
const NO_HANDLER: u64 = u64::MAX;

/// One registered mapping. `version` is odd while the bounds change.
struct Slot {
    taken: AtomicBool,
    version: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    damaged: AtomicBool,
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            taken: AtomicBool::new(false),
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            damaged: AtomicBool::new(false),
        }
    }

    fn take(&self) -> bool {
        !self.taken.load(Ordering::Relaxed) && !self.taken.swap(true, Ordering::AcqRel)
    }

    fn set(&self, start: usize, end: usize) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.start.store(start, Ordering::SeqCst);
        self.end.store(end, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// A slot that changes meanwhile is not the one whose mapping is being read.
    fn contains(&self, address: usize) -> bool {
        let version = self.version.load(Ordering::Acquire);
        let within = self.start.load(Ordering::Relaxed) <= address
            && address < self.end.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        within && version.is_multiple_of(2) && version == self.version.load(Ordering::Relaxed)
    }
}

/// Keeps faults in a range of addresses from killing the process, while it lives.
pub(super) struct Registration {
    slot: &'static Slot,
}

impl Registration {
    /// Registers `len` bytes of a mapping from `start` on. Fails if the table is
    /// full or the handler cannot be installed. Drop this before the mapping.
    pub fn new(start: usize, len: usize) -> io::Result<Registration> {
        // SAFETY: sysconf only returns a number.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        PAGE_BYTES.store(page_bytes, Ordering::Relaxed);
        ensure_installed()?;
        let slot = TABLE
            .iter()
            .position(Slot::take)
            .ok_or_else(|| io::Error::other("too many mappings"))?;
        TABLE_END.fetch_max(slot + 1, Ordering::SeqCst);
        let slot = &TABLE[slot];
        slot.damaged.store(false, Ordering::SeqCst);
        slot.set(start, start + len.next_multiple_of(page_bytes));
        Ok(Registration { slot })
    }

    /// Returns whether some of the bytes have been replaced by zeros.
    pub fn is_damaged(&self) -> bool {
        self.slot.damaged.load(Ordering::Acquire)
    }

    /// Marks the mapping as one that no longer shows the file.
    pub fn mark_damaged(&self) {
        self.slot.damaged.store(true, Ordering::Release);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.slot.set(0, 0);
        self.slot.taken.store(false, Ordering::Release);
    }
}

/// Installs the handler, again if something else took its place. One system call
/// when nothing did.
pub(super) fn ensure_installed() -> io::Result<()> {
    let ours = on_sigbus as *const () as usize;
    // SAFETY: a sigaction of zeros is a valid value, and both pointers are to one.
    let replaced = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        let mut replaced: libc::sigaction = mem::zeroed();
        if libc::sigaction(libc::SIGBUS, ptr::null(), &mut replaced) == 0
            && replaced.sa_sigaction == ours
        {
            return Ok(());
        }
        action.sa_sigaction = ours;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut action.sa_mask);
        if libc::sigaction(libc::SIGBUS, &action, &mut replaced) != 0 {
            return Err(io::Error::last_os_error());
        }
        replaced
    };
    if replaced.sa_sigaction != ours {
        let siginfo = replaced.sa_flags & libc::SA_SIGINFO != 0;
        let handler = (replaced.sa_sigaction as u64) << 1 | u64::from(siginfo);
        let first =
            match FIRST.compare_exchange(NO_HANDLER, handler, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => handler,
                Err(first) => first,
            };
        let later = if handler == first { NO_HANDLER } else { handler };
        LATER.store(later, Ordering::SeqCst);
    }
    Ok(())
}

extern "C" fn on_sigbus(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: errno is per thread, and the kernel hands in a valid `info`.
    unsafe {
        let errno = *errno_location();
        let fault = ((*info).si_code > 0).then(|| (*info).si_addr() as usize);
        if !fault.is_some_and(mend) {
            pass_on(signal, info, context, fault);
        }
        *errno_location() = errno;
    }
}

/// Puts a page of zeros at `address` if that is in a registered mapping.
fn mend(address: usize) -> bool {
    let table = &TABLE[..TABLE_END.load(Ordering::SeqCst)];
    let Some(slot) = table.iter().find(|slot| slot.contains(address)) else {
        return false;
    };
    // Before the zeros appear: a reader of them must see the mark.
    slot.damaged.store(true, Ordering::SeqCst);
    let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
    let page = address - address % page_bytes;
    // SAFETY: the page belongs to a registered mapping, which its owner only reads,
    // through raw pointers, and which is alive as long as it is registered.
    let zeros = unsafe {
        libc::mmap(
            page as *mut c_void,
            page_bytes,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    zeros != libc::MAP_FAILED
}

/// Gives a signal that is not ours to the handler that would have had it.
///
/// A handler that replaced ours may hold ours as the one before it, and hand the
/// signal back. Then it is not asked again.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void, fault: Option<usize>) {
    let later = LATER.load(Ordering::SeqCst);
    if later != NO_HANDLER && !fault.is_some_and(is_stuck) {
        call(later, signal, info, context, fault.is_some());
        if is_pending(signal) {
            LATER.store(NO_HANDLER, Ordering::SeqCst);
        }
    } else {
        LATER.store(NO_HANDLER, Ordering::SeqCst);
        call(FIRST.load(Ordering::SeqCst), signal, info, context, fault.is_some());
    }
}

fn is_stuck(address: usize) -> bool {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    static REPEATS: AtomicU32 = AtomicU32::new(0);
    if LAST.swap(address, Ordering::SeqCst) != address {
        REPEATS.store(0, Ordering::SeqCst);
    }
    REPEATS.fetch_add(1, Ordering::SeqCst) >= REPEATS_MAX
}

fn is_pending(signal: c_int) -> bool {
    // SAFETY: a signal set of zeros is a valid value for sigpending to fill.
    unsafe {
        let mut pending: libc::sigset_t = mem::zeroed();
        libc::sigpending(&mut pending) == 0 && libc::sigismember(&pending, signal) == 1
    }
}

fn call(handler: u64, signal: c_int, info: *mut siginfo_t, context: *mut c_void, fault: bool) {
    let address = (handler >> 1) as usize;
    if address == libc::SIG_IGN && !fault {
        return;
    }
    // SAFETY: the address came from sigaction, whose flags say which of the two
    // kinds of function it is; the default action is taken by the kernel once the
    // faulting instruction runs again, or by the signal raised here.
    unsafe {
        if handler == NO_HANDLER || address == libc::SIG_DFL || address == libc::SIG_IGN {
            libc::signal(signal, libc::SIG_DFL);
            if !fault {
                libc::raise(signal);
            }
        } else if handler & 1 == 1 {
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                mem::transmute(address);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(c_int) = mem::transmute(address);
            handler(signal);
        }
    }
}
