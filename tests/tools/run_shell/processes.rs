//! What is left of a process.

/// Nothing is left of the process, not even its exit status for whoever should have asked for it.
pub(super) fn is_gone(pid: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// The process has ended; its parent may not have asked for its exit status yet.
pub(super) fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('Z'))
}
