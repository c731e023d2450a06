//! How much memory files could take without pushing anything else out.

use std::fs;
use std::path::Path;

/// Returns the bytes of memory that could be free: what the system says it could
/// spare, or what the control group of this process allows, if that is less.
/// `u64::MAX` where neither is known.
pub(crate) fn available_memory() -> u64 {
    let system = fs::read_to_string("/proc/meminfo").ok().and_then(|text| parse_meminfo(&text));
    system.unwrap_or(u64::MAX).min(group_limit().unwrap_or(u64::MAX))
}

fn parse_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Returns the lowest limit of the control group and those it is in.
fn group_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, group) = (fields.next()?, fields.next()?.trim_start_matches('/'));
            if controllers.is_empty() {
                lowest(Path::new("/sys/fs/cgroup"), group, "memory.max")
            } else if controllers.split(',').any(|name| name == "memory") {
                lowest(Path::new("/sys/fs/cgroup/memory"), group, "memory.limit_in_bytes")
            } else {
                None
            }
        })
        .min()
}

fn lowest(root: &Path, group: &str, file: &str) -> Option<u64> {
    root.join(group)
        .ancestors()
        .take_while(|folder| folder.starts_with(root))
        .filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok())
        .min()
}
