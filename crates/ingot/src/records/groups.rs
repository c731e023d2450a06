//! Groups of records that are decoded together: the latest used ones of all files.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::Result;
use crate::format::Group;
use crate::process::PerProcess;
use crate::storage::available_memory;

/// Most bytes that decoded groups take in a process, whatever memory it has.
const BUDGET_MAX: u64 = 256 << 20;

/// Groups that are kept, however large.
const KEPT_MIN: usize = 2;

/// The decoded groups of one file, known by where they begin. What they take is shared
/// with all other files of the process: when it is too much, groups that were not used for
/// the longest time go, but never the last two: a batch may lie across the end of one.
pub struct Groups {
    file: u64,
}

impl Groups {
    /// Returns an empty set for a file.
    pub fn new() -> Groups {
        static FILES: AtomicU64 = AtomicU64::new(0);
        Groups { file: FILES.fetch_add(1, Ordering::Relaxed) }
    }

    /// Returns how many bytes of groups are kept.
    pub fn budget() -> u64 {
        Kept::of_process().budget
    }

    /// Returns the group at `offset` if it is there.
    pub fn get(&self, offset: u64) -> Option<Arc<Group>> {
        let kept = Kept::of_process();
        let mut state = kept.lock();
        let slot = state.touch(self.file, offset)?;
        slot.group.get().cloned()
    }

    /// Returns the group at `offset`, and loads it if it is not there. Threads that want
    /// the same wait for the one that loads it.
    pub fn get_or_load(
        &self,
        offset: u64,
        load: impl FnOnce() -> Result<Group>,
    ) -> Result<Arc<Group>> {
        let kept = Kept::of_process();
        let slot = kept.lock().slot(self.file, offset);
        if let Some(group) = slot.group.get() {
            return Ok(Arc::clone(group));
        }
        // A decoder that panics under this lock leaves nothing half done.
        let _loading = slot.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = slot.group.get() {
            return Ok(Arc::clone(group));
        }
        match load() {
            Ok(group) => {
                let group = Arc::new(group);
                let _ = slot.group.set(Arc::clone(&group));
                kept.lock().account(self.file, offset, size_of_group(&group), kept.budget);
                Ok(group)
            }
            Err(error) => {
                kept.lock().forget(self.file, offset);
                Err(error)
            }
        }
    }
}

impl Clone for Groups {
    /// Returns an empty set: in the child of a fork a thread of the parent may hold the lock of a
    /// group.
    fn clone(&self) -> Groups {
        Groups::new()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        Kept::of_process().lock().forget_file(self.file);
    }
}

fn size_of_group(group: &Group) -> u64 {
    (group.bytes.capacity() + group.ends.capacity() * size_of::<usize>()) as u64
}

struct Kept {
    state: Mutex<State>,
    budget: u64,
}

#[derive(Default)]
struct State {
    files: HashMap<u64, HashMap<u64, Entry>>,
    /// Groups in the order of their use, with the time of it; a group that was used again
    /// since is further back, too.
    order: VecDeque<(u64, u64, u64)>,
    now: u64,
    bytes: u64,
}

struct Entry {
    slot: Arc<Slot>,
    used: u64,
    bytes: u64,
}

#[derive(Default)]
struct Slot {
    group: OnceLock<Arc<Group>>,
    loading: Mutex<()>,
}

impl Kept {
    fn of_process() -> Arc<Kept> {
        static KEPT: PerProcess<Kept> = PerProcess::new();
        KEPT.get(|| Kept {
            state: Mutex::default(),
            budget: BUDGET_MAX.min(available_memory() / 64),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panics under this lock")
    }
}

impl State {
    fn touch(&mut self, file: u64, offset: u64) -> Option<Arc<Slot>> {
        let entry = self.files.get_mut(&file)?.get_mut(&offset)?;
        self.now += 1;
        entry.used = self.now;
        Some(Arc::clone(&entry.slot))
    }

    fn slot(&mut self, file: u64, offset: u64) -> Arc<Slot> {
        if let Some(slot) = self.touch(file, offset) {
            return slot;
        }
        let slot = Arc::<Slot>::default();
        self.now += 1;
        let entry = Entry { slot: Arc::clone(&slot), used: self.now, bytes: 0 };
        self.files.entry(file).or_default().insert(offset, entry);
        slot
    }

    /// Counts a group that was loaded, and lets others go.
    fn account(&mut self, file: u64, offset: u64, bytes: u64, budget: u64) {
        let Some(entry) = self.files.get_mut(&file).and_then(|file| file.get_mut(&offset)) else {
            return;
        };
        entry.bytes = bytes;
        self.bytes += bytes;
        self.order.push_back((file, offset, entry.used));
        let mut steps = 2 * self.order.len();
        while self.bytes > budget && self.order.len() > KEPT_MIN && steps > 0 {
            steps -= 1;
            let Some((file, offset, used)) = self.order.pop_front() else { return };
            let Some(entry) = self.files.get(&file).and_then(|file| file.get(&offset)) else {
                continue;
            };
            let is_pinned =
                entry.slot.group.get().is_some_and(|group| Arc::strong_count(group) > 1);
            if entry.used == used && !is_pinned {
                self.forget(file, offset);
            } else {
                self.order.push_back((file, offset, entry.used));
            }
        }
    }

    fn forget(&mut self, file: u64, offset: u64) {
        if let Some(entry) = self.files.get_mut(&file).and_then(|file| file.remove(&offset)) {
            self.bytes -= entry.bytes;
        }
    }

    fn forget_file(&mut self, file: u64) {
        for entry in self.files.remove(&file).into_iter().flatten() {
            self.bytes -= entry.1.bytes;
        }
        self.order.retain(|&(owner, _, _)| owner != file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn group_of(bytes: usize) -> Group {
        Group { bytes: vec![1; bytes], ends: vec![bytes] }
    }

    #[test]
    fn groups_are_loaded_once() {
        let groups = Groups::new();
        assert!(groups.get(7).is_none());
        let first = groups.get_or_load(7, || Ok(group_of(3))).unwrap();
        let again = groups.get_or_load(7, || panic!("it is there")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert!(groups.get(7).is_some());
        assert!(Groups::new().get(7).is_none());
    }

    #[test]
    fn a_group_that_cannot_be_loaded_is_tried_again() {
        let groups = Groups::new();
        let failed = groups.get_or_load(7, || Err(Error::Invalid("no".to_owned())));
        assert!(failed.is_err());
        assert!(groups.get_or_load(7, || Ok(group_of(3))).is_ok());
    }

    #[test]
    fn a_group_whose_decoder_panics_is_tried_again() {
        let groups = Groups::new();
        let load = || groups.get_or_load(7, || panic!("as asked"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).is_err());
        assert!(groups.get_or_load(7, || Ok(group_of(3))).is_ok());
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut state = State::default();
        for offset in 0..4 {
            let _ = state.slot(1, offset);
            state.account(1, offset, 10, 30);
            let _ = state.touch(1, 0);
        }
        let left: Vec<u64> = (0..4).filter(|&offset| state.touch(1, offset).is_some()).collect();
        assert_eq!((left, state.bytes), (vec![0, 2, 3], 30));
        for offset in [7, 8, 9] {
            let _ = state.slot(2, offset);
            state.account(2, offset, 1000, 30);
        }
        assert_eq!(state.bytes, 2000, "the latest two stay, however large");
        state.forget_file(2);
        assert_eq!((state.bytes, state.order.len()), (0, 0));
    }

    #[test]
    fn threads_that_want_the_same_load_it_once() {
        let (groups, loads) = (Groups::new(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    groups.get_or_load(1, || {
                        loads.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        Ok(group_of(5))
                    })
                });
            }
        });
        assert_eq!(loads.load(Ordering::Relaxed), 1);
    }
}
