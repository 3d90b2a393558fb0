//! The calls that could make a file setuid or setgid: outside of the cell it would run with the rights of whoever owns it. They are the calls of
//! `RestrictSUIDSGID=` of systemd.exec(5), and directories are not excepted either.

use super::{allow, argument, for_call, load, of, refuse, when};
use libc::{BPF_JEQ, BPF_JSET, sock_filter};

const BITS: u32 = libc::S_ISUID | libc::S_ISGID;
/// `O_TMPFILE` has the bit of `O_DIRECTORY` as well, which makes nothing.
const MAKES: libc::c_int = libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY);
/// Calls with a mode, and which argument that is.
const MODES: &[(libc::c_long, usize)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];
/// Calls that have a mode only where their flags make something, and which arguments the flags and the mode are.
const OPENS: &[(libc::c_long, usize, usize)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// Refuses modes with these bits.
pub(super) fn refuse_setuid(program: &mut Vec<sock_filter>) {
    for (call, flags, mode) in OPENS {
        let looks = [
            load(argument(*flags)),
            when(BPF_JSET, MAKES.cast_unsigned(), 0, 3),
            load(argument(*mode)),
            when(BPF_JSET, BITS, 0, 1),
            refuse(libc::EPERM),
            allow(),
        ];
        for_call(program, *call, &looks);
    }
    for (call, mode) in MODES {
        for_call(program, *call, &[load(argument(*mode)), when(BPF_JSET, BITS, 0, 1), refuse(libc::EPERM), allow()]);
    }
    // Its mode is in memory, where no filter looks. Programs then take `openat`, as they do on kernels before 5.6; `EPERM` would be an answer
    // about the file.
    program.extend([when(BPF_JEQ, of(libc::SYS_openat2), 0, 1), refuse(libc::ENOSYS)]);
}

#[cfg(test)]
mod tests {
    use super::super::{families, program, tests};
    use super::*;

    fn answer(call: libc::c_long, arguments: [u64; 6]) -> u32 {
        tests::answer(&program(families(true), false, false), call, arguments)
    }

    #[test]
    fn no_mode_makes_a_file_setuid_or_setgid() {
        let at = |number: usize, value: u64| {
            let mut arguments = [0; 6];
            arguments[number] = value;
            arguments
        };
        for (call, mode) in MODES {
            for (value, refused) in [(0o755, 0), (0o1777, 0), (0o4755, libc::EPERM), (0o2755, libc::EPERM)] {
                assert_eq!(answer(*call, at(*mode, value)), refused.cast_unsigned(), "{call} {value:o}");
            }
        }
        let create = libc::O_CREAT.cast_unsigned().into();
        for (call, flags, mode) in OPENS {
            let (made, nameless) = (at(*flags, create), at(*flags, libc::O_TMPFILE.cast_unsigned().into()));
            for (mut arguments, refused) in [
                (made, libc::EPERM),
                (nameless, libc::EPERM),
                // Nothing is made, and what is where a mode would be is chance.
                (at(*flags, 0), 0),
                (at(*flags, libc::O_DIRECTORY.cast_unsigned().into()), 0),
            ] {
                assert_eq!(answer(*call, arguments), 0, "{call}");
                arguments[*mode] = 0o4755;
                assert_eq!(answer(*call, arguments), refused.cast_unsigned(), "{call} {arguments:?}");
                arguments[*mode] = 0o644;
                assert_eq!(answer(*call, arguments), 0, "{call} {arguments:?}");
            }
        }
        assert_eq!(answer(libc::SYS_openat2, [0; 6]), libc::ENOSYS.cast_unsigned());
        // What comes after is as it was.
        assert_eq!(answer(libc::SYS_mount, [0; 6]), libc::EPERM.cast_unsigned());
        assert_eq!(answer(libc::SYS_read, [0; 6]), 0);
    }
}
