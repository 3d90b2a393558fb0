//! The entry point, system calls and exit of programs that have no standard library.
#![allow(dead_code, reason = "each of the programs needs a part of it")]

use super::main;
use core::arch::{asm, global_asm};
use core::panic::PanicInfo;

pub const CLOEXEC: usize = 0o2_000_000;
/// The status of what could not do its work.
pub const BROKEN: usize = 125;

#[cfg(target_arch = "x86_64")]
global_asm!(".globl _start", "_start:", "mov rdi, rsp", "and rsp, -16", "call {main}", "ud2", main = sym main);
#[cfg(target_arch = "aarch64")]
global_asm!(".globl _start", "_start:", "mov x0, sp", "bl {main}", "brk 1", main = sym main);

/// Numbers of system calls.
#[cfg(target_arch = "x86_64")]
pub mod number {
    pub const READ: usize = 0;
    pub const RECVMSG: usize = 47;
    pub const CHDIR: usize = 80;
    pub const DUP3: usize = 292;
    pub const CLONE: usize = 56;
    pub const EXECVE: usize = 59;
    pub const EXECVEAT: usize = 322;
    pub const FCNTL: usize = 72;
    pub const WAIT4: usize = 61;
    pub const KILL: usize = 62;
    pub const PRCTL: usize = 157;
    pub const SIGPROCMASK: usize = 14;
    pub const EXIT_GROUP: usize = 231;
    pub const PPOLL: usize = 271;
    pub const SIGNALFD4: usize = 289;
    pub const CLOSE_RANGE: usize = 436;
    pub const WRITE: usize = 1;
    pub const SETPGID: usize = 109;
    pub const SETSID: usize = 112;
    pub const GETPID: usize = 39;
    pub const IOCTL: usize = 16;
    pub const PRLIMIT64: usize = 302;
    pub const SOCKET: usize = 41;
    pub const CONNECT: usize = 42;
    pub const SHUTDOWN: usize = 48;
}
#[cfg(target_arch = "aarch64")]
pub mod number {
    pub const READ: usize = 63;
    pub const RECVMSG: usize = 212;
    pub const CHDIR: usize = 49;
    pub const DUP3: usize = 24;
    pub const CLONE: usize = 220;
    pub const EXECVE: usize = 221;
    pub const EXECVEAT: usize = 281;
    pub const FCNTL: usize = 25;
    pub const WAIT4: usize = 260;
    pub const KILL: usize = 129;
    pub const PRCTL: usize = 167;
    pub const SIGPROCMASK: usize = 135;
    pub const EXIT_GROUP: usize = 94;
    pub const PPOLL: usize = 73;
    pub const SIGNALFD4: usize = 74;
    pub const CLOSE_RANGE: usize = 436;
    pub const WRITE: usize = 64;
    pub const SETPGID: usize = 154;
    pub const SETSID: usize = 157;
    pub const GETPID: usize = 172;
    pub const IOCTL: usize = 29;
    pub const PRLIMIT64: usize = 261;
    pub const SOCKET: usize = 198;
    pub const CONNECT: usize = 203;
    pub const SHUTDOWN: usize = 210;
}

/// Calls the kernel.
///
/// # Safety
///
/// As the system call says.
#[cfg(target_arch = "x86_64")]
pub unsafe fn call(number: usize, arguments: [usize; 5]) -> isize {
    let result;
    // SAFETY: up to the caller.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number.cast_signed() => result,
            in("rdi") arguments[0], in("rsi") arguments[1], in("rdx") arguments[2], in("r10") arguments[3], in("r8") arguments[4],
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

/// Calls the kernel.
///
/// # Safety
///
/// As the system call says.
#[cfg(target_arch = "aarch64")]
pub unsafe fn call(number: usize, arguments: [usize; 5]) -> isize {
    let result;
    // SAFETY: up to the caller.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") arguments[0].cast_signed() => result,
            in("x1") arguments[1], in("x2") arguments[2], in("x3") arguments[3], in("x4") arguments[4],
        );
    }
    result
}

/// Ends the process.
///
/// # Safety
///
/// There is nothing to see to.
pub unsafe fn exit(status: usize) -> ! {
    loop {
        // SAFETY: it does not return.
        unsafe { call(number::EXIT_GROUP, [status, 0, 0, 0, 0]) };
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: it does not return.
    unsafe { exit(BROKEN) }
}
