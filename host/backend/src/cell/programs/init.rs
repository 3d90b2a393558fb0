//! The first process of a cell: starts the command, passes signals on to it, waits for every process whose parent has ended, and ends
//! with the host.
//!
//! As the first of its namespace a shell would ignore signals that it does not handle, and reap nobody. It has no library and no memory
//! but its stack, so that it starts in a tenth of a millisecond. When it ends the kernel kills all that is left in the cell.
//!
//! `init DESCRIPTOR GROUP FILE ARGUMENTS…`: the descriptor is a socket whose other end the host holds. It reads there how many processes
//! the command left, which signal ended it or 0, and its status, as three numbers of 32 bits: by then all processes are gone but this one.
//! With `own` as GROUP the command becomes the foreground of the terminal that is its standard input, as a job of a shell does; else it is a
//! session of its own.
//!
//! FILE is the path of what is executed, or `=NUMBER` for what is open as that descriptor; `#NUMBER` for a script, which its interpreter reads
//! there, so that it stays open.
//!
//! `GROUP:PROCESSES` is for a cell that another program made: it says by a zero of 32 bits that it is there, and there can be so many processes
//! from then on.
//!
//! `init DESCRIPTOR keep -` starts nothing: it keeps the cell that it is in until the other end of that socket is closed.
//!
//! `init DESCRIPTOR users -` does the same for who writes which users there are in its namespace: it says by a zero of 32 bits that it is there.
//!
//! `init DESCRIPTOR spare -` is there before its command is known: it reads from the socket what to start, as [`spare`] says.
//!
//! `init DESCRIPTOR wait PROCESS`: the same program outside, as what a pane of tmux runs. It waits for the first process of a cell, keeps the
//! other end of that socket open meanwhile, and ends as that one did.
#![no_std]
#![no_main]

mod machine;

use core::arch::asm;
use core::mem::MaybeUninit;
use machine::{BROKEN, CLOEXEC, call, exit, number};

const SIGHUP: u32 = 1;
const SIGINT: u32 = 2;
const SIGTERM: u32 = 15;
const SIGCHLD: u32 = 17;
/// Signals that are passed on.
const PASSED_ON: [u32; 3] = [SIGHUP, SIGINT, SIGTERM];
/// Of all signals, as the kernel counts them.
const MASK_BYTES: usize = 8;
const SIG_SETMASK: usize = 2;
/// The child shares our memory (`CLONE_VM`), we wait until it has executed a program or ended (`CLONE_VFORK`), and its end sends us SIGCHLD.
const STARTED: usize = 0x100 | 0x4000 | SIGCHLD as usize;
/// What a process has of a stack until it is the command, in pieces of 16 bytes.
const BEGINNING: usize = 256;
const PR_SET_DUMPABLE: usize = 4;
const WNOHANG: usize = 1;
const RLIMIT_NPROC: usize = 6;
/// Of a status: the signal that ended the process.
const SIGNAL: u32 = 0x7f;
const SIGKILL: usize = 9;
const TIOCSPGRP: usize = 0x5410;
const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;
const POLLIN: i16 = 1;
const F_SETFD: usize = 2;
const FD_CLOEXEC: usize = 1;
const AT_EMPTY_PATH: usize = 0x1000;
/// Bytes of what a signal descriptor says of one signal; its number comes first.
const SIGNAL_BYTES: usize = 128;
const ECHILD: isize = -10;
/// As shells say that a file could not be executed.
const NOT_EXECUTED: usize = 127;
/// Bytes that a spare reads after the head of its message; the host (`spare.rs`) has the same number.
const MOST_TOLD: usize = 64 << 10;
/// Arguments and variables in that message.
const MOST_WORDS: usize = 1024;

#[repr(C)]
struct Polled {
    descriptor: i32,
    events: i16,
    happened: i16,
}

/// Starts `child` in this process's memory, on the stack that ends at `top`, and stands still until it has executed something or ended: nothing
/// is copied, neither tables of pages now nor pages later.
#[cfg(target_arch = "x86_64")]
unsafe fn start(top: *mut u128, child: unsafe extern "C" fn(*const Beginning) -> !, given: *const Beginning) -> isize {
    let result;
    // SAFETY: up to the caller. Registers but those of the call itself are the same on both sides.
    unsafe {
        asm!(
            "syscall", "test rax, rax", "jnz 2f", "xor ebp, ebp", "mov rdi, r13", "call r12", "ud2", "2:",
            inlateout("rax") number::CLONE.cast_signed() => result,
            in("rdi") STARTED, in("rsi") top, in("rdx") 0, in("r10") 0, in("r8") 0, in("r12") child, in("r13") given,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn start(top: *mut u128, child: unsafe extern "C" fn(*const Beginning) -> !, given: *const Beginning) -> isize {
    let result;
    // SAFETY: up to the caller. Registers but that of the result are the same on both sides.
    unsafe {
        asm!(
            "svc 0", "cbnz x0, 2f", "mov x0, x20", "blr x21", "brk 1", "2:",
            in("x8") number::CLONE,
            inlateout("x0") STARTED => result,
            in("x1") top, in("x2") 0, in("x3") 0, in("x4") 0, in("x20") given, in("x21") child,
        );
    }
    result
}

/// `stack` is what the kernel left there: the number of arguments, the arguments, a null, the variables.
unsafe extern "C" fn main(stack: *const usize) -> ! {
    // SAFETY: the kernel lays the stack out so; all else are system calls on memory of this function.
    unsafe {
        let count = *stack;
        let arguments = stack.add(1).cast::<*const u8>();
        let variables = arguments.add(count + 1);
        if count < 4 {
            exit(BROKEN);
        }
        let host = number_of(*arguments.add(1));
        match **arguments.add(2) {
            b'w' => wait_for(number_of(*arguments.add(3))),
            b'k' => keep(host),
            b'u' => {
                say_it_is_there(host);
                keep(host)
            }
            b's' => spare(host),
            _ if count < 5 => exit(BROKEN),
            _ => {}
        }
        let mut limit = *arguments.add(2);
        while *limit != 0 && *limit != b':' {
            limit = limit.add(1);
        }
        if *limit == b':' {
            let most = [number_of(limit.add(1)) as u64; 2];
            if call(number::PRLIMIT64, [0, RLIMIT_NPROC, &raw const most as usize, 0, 0]) < 0 {
                exit(BROKEN);
            }
            say_it_is_there(host);
        }
        // What it knows is nobody's to read.
        call(number::PRCTL, [PR_SET_DUMPABLE, 0, 0, 0, 0]);
        let has_own_group = **arguments.add(2) == b'o';
        run(host, has_own_group, &Command { file: *arguments.add(3), arguments: arguments.add(4), variables });
    }
}

/// What to execute, as `execve` takes it.
struct Command {
    file: *const u8,
    arguments: *const *const u8,
    variables: *const *const u8,
}

/// Becomes the command. Returns only when it cannot be executed.
unsafe fn execute(command: &Command) {
    let (arguments, variables) = (command.arguments as usize, command.variables as usize);
    // SAFETY: system calls on texts that end with a zero.
    unsafe {
        let kind = *command.file;
        if kind != b'=' && kind != b'#' {
            call(number::CLOSE_RANGE, [3, u32::MAX as usize, 0, 0, 0]);
            call(number::EXECVE, [command.file as usize, arguments, variables, 0, 0]);
            return;
        }
        let descriptor = number_of(command.file.add(1)) as usize;
        if descriptor > 3 {
            call(number::CLOSE_RANGE, [3, descriptor - 1, 0, 0, 0]);
        }
        call(number::CLOSE_RANGE, [descriptor + 1, u32::MAX as usize, 0, 0, 0]);
        if kind == b'=' {
            call(number::FCNTL, [descriptor, F_SETFD, FD_CLOEXEC, 0, 0]);
        }
        call(number::EXECVEAT, [descriptor, c"".as_ptr() as usize, arguments, variables, AT_EMPTY_PATH]);
    }
}

/// What the process of the command begins with.
struct Beginning<'c> {
    has_own_group: bool,
    command: &'c Command,
}

/// The process of the command, until it is that.
unsafe extern "C" fn begin(beginning: *const Beginning) -> ! {
    let none: u64 = 0;
    // SAFETY: `run` passes a `Beginning` that outlives this function, as it stands still meanwhile; all else are system calls.
    unsafe {
        if !(*beginning).has_own_group {
            call(number::SETSID, [0; 5]);
        } else {
            let own = call(number::GETPID, [0; 5]) as i32;
            call(number::SETPGID, [0; 5]);
            call(number::IOCTL, [0, TIOCSPGRP, &raw const own as usize, 0, 0]);
        }
        call(number::SIGPROCMASK, [SIG_SETMASK, &raw const none as usize, 0, MASK_BYTES, 0]);
        execute((*beginning).command);
        let told = b"toolcrib: the program could not be executed\n";
        call(number::WRITE, [2, told.as_ptr() as usize, told.len(), 0, 0]);
        exit(NOT_EXECUTED);
    }
}

/// Starts the command, and stays until it has ended.
unsafe fn run(host: i32, has_own_group: bool, command: &Command) -> ! {
    // SAFETY: system calls on memory of this function, and on texts that end with a zero.
    unsafe {
        let watched: u64 = PASSED_ON.iter().chain(&[SIGCHLD]).map(|signal| 1 << (signal - 1)).sum();
        let all = u64::MAX;
        // Who takes a terminal from its foreground is stopped by SIGTTOU, but for those who block it.
        call(number::SIGPROCMASK, [SIG_SETMASK, &raw const all as usize, 0, MASK_BYTES, 0]);
        let mut stack = MaybeUninit::<[u128; BEGINNING]>::uninit();
        let child = start(stack.as_mut_ptr().add(1).cast(), begin, &Beginning { has_own_group, command });
        if child < 0 {
            exit(BROKEN);
        }
        let signals = call(number::SIGNALFD4, [usize::MAX, &raw const watched as usize, MASK_BYTES, CLOEXEC, 0]);
        if signals < 0 {
            exit(BROKEN);
        }
        // The command's streams are its own: who reads them learns their end from it.
        for standard in 0..3 {
            call(number::CLOSE_RANGE, [standard, standard, 0, 0, 0]);
        }
        loop {
            let mut polled = [
                Polled { descriptor: signals as i32, events: POLLIN, happened: 0 },
                Polled { descriptor: host, events: 0, happened: 0 },
            ];
            call(number::PPOLL, [polled.as_mut_ptr() as usize, polled.len(), 0, 0, MASK_BYTES]);
            // The host is gone, and with this process all that it had started.
            if polled[1].happened != 0 {
                exit(BROKEN);
            }
            if polled[0].happened == 0 {
                continue;
            }
            let mut said = [0_u8; SIGNAL_BYTES];
            call(number::READ, [signals as usize, said.as_mut_ptr() as usize, SIGNAL_BYTES, 0, 0]);
            let signal = u32::from_ne_bytes([said[0], said[1], said[2], said[3]]);
            if signal != SIGCHLD {
                call(number::KILL, [child as usize, signal as usize, 0, 0, 0]);
                continue;
            }
            reap(child, host);
        }
    }
}

/// A message as `recvmsg` takes it.
#[repr(C)]
struct Message {
    name: usize,
    name_bytes: u32,
    pieces: *mut [usize; 2],
    piece_count: usize,
    control: *mut Descriptors,
    control_bytes: usize,
    flags: i32,
}

/// Three descriptors that come with a message.
#[repr(C)]
struct Descriptors {
    bytes: usize,
    level: i32,
    kind: i32,
    standard: [i32; 3],
}

/// Waits for a message that says what to start, and starts that.
///
/// The message begins with three numbers of 32 bits: the bytes that follow, and how many arguments and variables are among them. What follows are texts
/// that end with a zero: the directory, the file, the arguments, the variables. Its standard input, output and error come with the first byte.
unsafe fn spare(host: i32) -> ! {
    let mut head = [0_u32; 3];
    let mut texts = MaybeUninit::<[u8; MOST_TOLD]>::uninit();
    let mut words = MaybeUninit::<[*const u8; MOST_WORDS + 2]>::uninit();
    let mut came = Descriptors { bytes: 0, level: 0, kind: 0, standard: [-1; 3] };
    let mut piece = [head.as_mut_ptr() as usize, size_of_val(&head)];
    let (pieces, control) = (&raw mut piece, &raw mut came);
    let control_bytes = size_of::<Descriptors>();
    let mut message = Message { name: 0, name_bytes: 0, pieces, piece_count: 1, control, control_bytes, flags: 0 };
    // SAFETY: system calls on memory of this function; what the host tells is as it is said above.
    unsafe {
        call(number::PRCTL, [PR_SET_DUMPABLE, 0, 0, 0, 0]);
        let got = call(number::RECVMSG, [host as usize, &raw mut message as usize, MSG_CMSG_CLOEXEC, 0, 0]);
        // The host is gone, or has no use for it.
        if got <= 0 {
            exit(0);
        }
        let [bytes, arguments, variables] = head.map(|number| number as usize);
        let is_whole = got as usize == size_of_val(&head) && came.standard[2] >= 0;
        if !is_whole || bytes > MOST_TOLD || arguments + variables > MOST_WORDS {
            exit(BROKEN);
        }
        let texts = texts.as_mut_ptr().cast::<u8>();
        let mut read = 0;
        while read < bytes {
            let more = call(number::READ, [host as usize, texts.add(read) as usize, bytes - read, 0, 0]);
            if more <= 0 {
                exit(BROKEN);
            }
            read += more as usize;
        }
        let (mut text, end) = (texts.cast_const(), texts.add(bytes).cast_const());
        let mut next = || {
            let this = text;
            while text < end && *text != 0 {
                text = text.add(1);
            }
            if text == end {
                exit(BROKEN);
            }
            text = text.add(1);
            this
        };
        let (directory, file) = (next(), next());
        let words = words.as_mut_ptr().cast::<*const u8>();
        let (arguments_at, variables_at) = (words, words.add(arguments + 1));
        for (at, count) in [(arguments_at, arguments), (variables_at, variables)] {
            for number in 0..count {
                at.add(number).write(next());
            }
            at.add(count).write(core::ptr::null());
        }
        for (standard, descriptor) in came.standard.into_iter().enumerate() {
            call(number::DUP3, [descriptor as usize, standard, 0, 0, 0]);
        }
        call(number::CLOSE_RANGE, [host as usize + 1, u32::MAX as usize, 0, 0, 0]);
        if call(number::CHDIR, [directory as usize, 0, 0, 0, 0]) < 0 {
            let told = b"toolcrib: the directory is not there\n";
            call(number::WRITE, [2, told.as_ptr() as usize, told.len(), 0, 0]);
            exit(BROKEN);
        }
        run(host, false, &Command { file, arguments: arguments_at, variables: variables_at })
    }
}

unsafe fn say_it_is_there(host: i32) {
    let there: u32 = 0;
    // SAFETY: a system call on memory of this function.
    unsafe { call(number::WRITE, [host as usize, &raw const there as usize, size_of_val(&there), 0, 0]) };
}

/// Waits for the end of the host.
unsafe fn keep(host: i32) -> ! {
    // SAFETY: system calls on memory of this function.
    unsafe {
        loop {
            let mut polled = Polled { descriptor: host, events: 0, happened: 0 };
            call(number::PPOLL, [&raw mut polled as usize, 1, 0, 0, MASK_BYTES]);
            if polled.happened != 0 {
                exit(0);
            }
        }
    }
}

/// Waits for a child, and ends as it did.
unsafe fn wait_for(child: i32) -> ! {
    // SAFETY: system calls on memory of this function.
    unsafe {
        loop {
            let mut status: u32 = 0;
            let ended = call(number::WAIT4, [child as usize, &raw mut status as usize, 0, 0, 0]);
            if ended == child as isize {
                exit(code(status));
            }
            if ended == ECHILD {
                exit(BROKEN);
            }
        }
    }
}

/// As shells tell how a process ended.
fn code(status: u32) -> usize {
    let signal = status & SIGNAL;
    (if signal == 0 { status >> 8 & 0xff } else { 128 + signal }) as usize
}

/// Takes the status of each process that has ended. When the command is among them, ends all others, says how many those were, and ends as
/// the command did.
unsafe fn reap(command: isize, host: i32) {
    // SAFETY: system calls on memory of this function.
    unsafe {
        let mut end = None;
        loop {
            let mut status: u32 = 0;
            let ended = call(number::WAIT4, [usize::MAX, &raw mut status as usize, WNOHANG, 0, 0]);
            if ended == command {
                end = Some(status);
            } else if ended <= 0 {
                break;
            }
        }
        let Some(status) = end else { return };
        call(number::KILL, [usize::MAX, SIGKILL, 0, 0, 0]);
        let mut told = [0, status & SIGNAL, code(status) as u32];
        while call(number::WAIT4, [usize::MAX, 0, 0, 0, 0]) > 0 {
            told[0] += 1;
        }
        call(number::WRITE, [host as usize, told.as_ptr() as usize, size_of_val(&told), 0, 0]);
        exit(code(status))
    }
}

unsafe fn number_of(mut digits: *const u8) -> i32 {
    let mut number = 0;
    // SAFETY: text of the kernel's, which ends with a zero.
    unsafe {
        while (b'0'..=b'9').contains(&*digits) {
            number = number * 10 + i32::from(*digits - b'0');
            digits = digits.add(1);
        }
    }
    number
}
