//! What git in a cell calls for what is outside of it: a signature by gpg, a password for a server (`keys/git.rs`).
//!
//! It passes its arguments and standard input to the host, prints the answer, and exits with the status in it. Checking a signature needs no
//! host: gpg does it with the keys that are in the cell.
//!
//! A request is the number of arguments, then the length and the bytes of each, then standard input to its end. An answer comes in pieces: two
//! numbers of 32 bits, and as many bytes as the second one says. The first is 1 for standard output, 2 for standard error, and 0 for the end,
//! where the second number is the status.
#![no_std]
#![no_main]

mod machine;

use core::mem::MaybeUninit;
use machine::{BROKEN, CLOEXEC, call, exit, number};

/// Where the host listens: the address family, and `KEYS_HOST` of `backend/cell/mod.rs`.
const HOST: [u8; 17] = *b"\x01\0/run/.keys/host";
const AF_UNIX: usize = 1;
const SOCK_STREAM: usize = 1;
const SHUT_WR: usize = 1;
/// Where gpg is that checks signatures.
const GPG: [&core::ffi::CStr; 2] = [c"/usr/bin/gpg", c"/usr/local/bin/gpg"];
const CHECKS: &[u8] = b"--verify\0";
/// Bytes that are handed on at a time.
const PIECE: usize = 32 << 10;

/// `stack` is what the kernel left there: the number of arguments, the arguments, a null, the variables.
unsafe extern "C" fn main(stack: *const usize) -> ! {
    // SAFETY: the kernel lays the stack out so; all else are system calls on memory of this function.
    unsafe {
        let count = *stack;
        let arguments = stack.add(1).cast::<*const u8>();
        if (1..count).any(|at| is(*arguments.add(at), CHECKS)) {
            for gpg in GPG {
                let variables = arguments.add(count + 1) as usize;
                call(number::EXECVE, [gpg.as_ptr() as usize, arguments as usize, variables, 0, 0]);
            }
            fail(b"toolcrib: gpg is not there\n");
        }
        let host = call(number::SOCKET, [AF_UNIX, SOCK_STREAM | CLOEXEC, 0, 0, 0]);
        if host < 0 || call(number::CONNECT, [host as usize, HOST.as_ptr() as usize, HOST.len(), 0, 0]) < 0 {
            fail(b"toolcrib: no host serves this cell now\n");
        }
        let host = host as usize;
        number_to(host, count - 1);
        for at in 1..count {
            let argument = *arguments.add(at);
            let mut length = 0;
            // The compiler would make another loop a call of a library.
            while argument.add(length).read_volatile() != 0 {
                length += 1;
            }
            number_to(host, length);
            write(host, argument, length);
        }
        while hand_on(0, host, PIECE) > 0 {}
        call(number::SHUTDOWN, [host, SHUT_WR, 0, 0, 0]);
        loop {
            let (to, mut left) = (number_from(host), number_from(host));
            if to == 0 {
                exit(left);
            }
            while left > 0 {
                left -= hand_on(host, to, left);
            }
        }
    }
}

/// Reads at most so many bytes from one descriptor and writes them to another; returns how many those were.
unsafe fn hand_on(from: usize, to: usize, most: usize) -> usize {
    let mut piece = MaybeUninit::<[u8; PIECE]>::uninit();
    let at = piece.as_mut_ptr().cast::<u8>();
    // SAFETY: system calls on memory of this function.
    unsafe {
        let got = call(number::READ, [from, at as usize, if most < PIECE { most } else { PIECE }, 0, 0]);
        if got > 0 {
            write(to, at, got as usize);
            return got as usize;
        }
        // The host says when it is done.
        if from != 0 {
            fail(b"toolcrib: the host is gone\n");
        }
        0
    }
}

unsafe fn write(to: usize, bytes: *const u8, count: usize) {
    let mut done = 0;
    while done < count {
        // SAFETY: a system call on memory of the caller.
        let wrote = unsafe { call(number::WRITE, [to, bytes.add(done) as usize, count - done, 0, 0]) };
        if wrote <= 0 {
            // SAFETY: it does not return.
            unsafe { exit(BROKEN) };
        }
        done += wrote as usize;
    }
}

unsafe fn number_to(to: usize, number: usize) {
    let number = number as u32;
    // SAFETY: memory of this function.
    unsafe { write(to, (&raw const number).cast(), size_of_val(&number)) };
}

unsafe fn number_from(from: usize) -> usize {
    let mut number = 0_u32;
    let mut got = 0;
    while got < size_of_val(&number) {
        // SAFETY: a system call on memory of this function.
        unsafe {
            let at = (&raw mut number).cast::<u8>().add(got) as usize;
            let more = call(number::READ, [from, at, size_of_val(&number) - got, 0, 0]);
            if more <= 0 {
                fail(b"toolcrib: the host is gone\n");
            }
            got += more as usize;
        }
    }
    number as usize
}

/// Whether a text of the kernel's is this one; both end with a zero.
unsafe fn is(text: *const u8, other: &[u8]) -> bool {
    // SAFETY: the text ends with a zero, and nothing is read behind the first byte that differs.
    other.iter().enumerate().all(|(at, byte)| unsafe { *text.add(at) } == *byte)
}

unsafe fn fail(why: &[u8]) -> ! {
    // SAFETY: a system call on memory of the caller; the other does not return.
    unsafe {
        call(number::WRITE, [2, why.as_ptr() as usize, why.len(), 0, 0]);
        exit(BROKEN)
    }
}
