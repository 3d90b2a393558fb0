//! What the kernel says of a process.

use toolcrib_tests::{memory_kib, resident_kib};

/// The most memory that a process ever had, in MiB.
pub(crate) fn peak_mib(pid: u32) -> u64 {
    memory_kib(pid, "VmHWM") >> 10
}

/// The memory that a process has now, in MiB.
pub(crate) fn resident_mib(pid: u32) -> u64 {
    resident_kib(pid) >> 10
}

/// The threads of a process now.
pub(crate) fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).expect("a running process").count()
}

/// The CPU time that a process has used, in milliseconds.
pub(crate) fn cpu_ms(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running process");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name in parentheses").1.split(' ').collect();
    let ticks = |index: usize| fields[index].parse::<u64>().expect("a number");
    // utime and stime, in hundredths of a second.
    (ticks(11) + ticks(12)) * 10
}
