//! What the kernel says of a process.

fn status_mib(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the kernel counts memory");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

/// The most memory that a process ever had, in MiB.
pub(crate) fn peak_mib(pid: u32) -> u64 {
    status_mib(pid, "VmHWM")
}

/// The memory that a process has now, in MiB.
pub(crate) fn resident_mib(pid: u32) -> u64 {
    status_mib(pid, "VmRSS")
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
