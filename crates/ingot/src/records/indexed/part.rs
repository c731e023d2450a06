//! Files on their way: hidden until they are whole, and removed if their writer was killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A file that nobody has written to for so long has lost its writer.
const AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Characters of the file's name in that of the hidden one.
const NAME_MAX: usize = 150;

const SUFFIX: &str = ".part";

/// Returns a hidden name beside `place` that no other process or thread uses.
pub fn temporary(place: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut random = [0; 8];
    // Without randomness the process and the number tell names apart.
    let _ = getrandom::fill(&mut random);
    let id = u64::from_le_bytes(random);
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let process = std::process::id();
    place.with_file_name(format!(".{name:.NAME_MAX$}.{process}-{number}-{id:016x}{SUFFIX}"))
}

/// Removes what killed writers have left in a folder. What cannot be removed stays.
pub fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|one| is_part(&one.file_name().to_string_lossy())) {
        let changed = entry.metadata().and_then(|about| about.modified());
        if changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > AGE)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a file has a name that [`temporary`] gives.
fn is_part(name: &str) -> bool {
    let made = name.strip_prefix('.').and_then(|name| name.strip_suffix(SUFFIX));
    let Some((_, id)) = made.and_then(|name| name.rsplit_once('.')) else { return false };
    let parts: Vec<&str> = id.split('-').collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    let is_hex = |text: &str| text.len() == 16 && text.bytes().all(|one| one.is_ascii_hexdigit());
    matches!(parts[..], [process, number, random]
        if is_number(process) && is_number(number) && is_hex(random))
}
