//! What a confined command may not ask of the kernel: a list of refusals, as commands may be anything. The namespaces are the wall; this
//! keeps what would make new ones, and what reaches past them.

mod modes;

use libc::{BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};
use std::mem::offset_of;

/// Refused with `EPERM`.
const REFUSED: &[libc::c_long] = &[
    // Other processes' memory and descriptors.
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    // Keys of the user's.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Doors into the kernel that no filter sees through, or that few need.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Other views of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Other namespaces.
    libc::SYS_setns,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_adjtimex,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];
/// Refused likewise but to a browser, which makes namespaces of its own and closes the file system to what is in them.
const NESTING: [libc::c_long; 2] = [libc::SYS_unshare, libc::SYS_chroot];
/// Refused likewise where nothing is to be debugged. They reach processes of the same command or pane, which others are not there for.
const DEBUGGING: [libc::c_long; 3] = [libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];
/// Families of sockets that a cell can have, first that of files and names; others are as if the kernel did not know them.
const FAMILIES: [libc::c_int; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
/// The bits of a kind of netlink socket: `SOCK_RAW` or `SOCK_DGRAM`, which the kernel treats alike, and the flags.
const NETLINK_KIND: libc::c_int = libc::SOCK_RAW | libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
/// Keys into a terminal that others read.
const INPUTS: [u32; 2] = [libc::TIOCSTI as u32, 0x541C /* TIOCLINUX */];
const NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
/// Numbers from here on are those of x32, under the same architecture.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

const NUMBER: usize = offset_of!(libc::seccomp_data, nr);
/// The low half of an argument: the kernel looks at no more of these.
const fn argument(number: usize) -> usize {
    offset_of!(libc::seccomp_data, args) + number * size_of::<u64>()
}

/// The families of which a cell can have sockets, with those of files and names or without.
pub(super) fn families(unix_sockets: bool) -> &'static [libc::c_int] {
    if unix_sockets { &FAMILIES } else { &FAMILIES[1..] }
}

/// The program of the filter. Sockets are of these families; pairs of them may be of any that a cell can have. Without `debug` no process is
/// looked into; with `nests` there can be namespaces within.
///
/// Commands that have a network also list its interfaces, addresses and routes by netlink. To change them takes `CAP_NET_ADMIN`, which no
/// command has. A process that nests could have it in a network namespace of its own, so it gets no netlink.
pub(super) fn program(families: &[libc::c_int], debug: bool, nests: bool) -> Vec<sock_filter> {
    let mut program = Vec::new();
    program.push(load(offset_of!(libc::seccomp_data, arch)));
    // Killing would break programs of 32 bits that can do without.
    program.extend([when(BPF_JEQ, ARCHITECTURE, 1, 0), refuse(libc::ENOSYS), load(NUMBER)]);
    #[cfg(target_arch = "x86_64")]
    program.extend([when(BPF_JGE, X32, 0, 1), refuse(libc::ENOSYS)]);
    // First: nothing else that is looked into is called so often as what opens files.
    modes::refuse_setuid(&mut program);
    let (debugging, nesting) = (if debug { &[][..] } else { &DEBUGGING }, if nests { &[][..] } else { &NESTING });
    for call in REFUSED.iter().chain(debugging).chain(nesting) {
        program.extend([when(BPF_JEQ, of(*call), 0, 1), refuse(libc::EPERM)]);
    }
    // The C library then takes `clone`, whose flags can be read.
    program.extend([when(BPF_JEQ, of(libc::SYS_clone3), 0, 1), refuse(libc::ENOSYS)]);
    if !nests {
        let clone = [load(argument(0)), when(BPF_JSET, NAMESPACES.cast_unsigned(), 0, 1), refuse(libc::EPERM), allow()];
        for_call(&mut program, libc::SYS_clone, &clone);
    }
    let [first, second] = INPUTS;
    let ioctl =
        [load(argument(1)), when(BPF_JEQ, first, 1, 0), when(BPF_JEQ, second, 0, 1), refuse(libc::EPERM), allow()];
    for_call(&mut program, libc::SYS_ioctl, &ioctl);
    if !nests && families.contains(&libc::AF_INET) {
        for_call(&mut program, libc::SYS_socket, &listing_interfaces());
    }
    for_call(&mut program, libc::SYS_socket, &of_families(families));
    for_call(&mut program, libc::SYS_socketpair, &of_families(&FAMILIES));
    program.push(allow());
    program
}

/// Allows netlink sockets that list interfaces. Other protocols of netlink fail as if the kernel did not have them. It expects the
/// number of the call to be loaded, and leaves it so for other families.
///
/// `NETLINK_SOCK_DIAG` is among the others. A filter sees the socket and not what is asked by it, and a question there makes the kernel load
/// the module of any family of sockets. `ss` then reads `/proc/net`.
fn listing_interfaces() -> Vec<sock_filter> {
    let looks = [
        load(argument(2)),
        when(BPF_JEQ, libc::NETLINK_ROUTE.cast_unsigned(), 1, 0),
        refuse(libc::EPROTONOSUPPORT),
        load(argument(1)),
        when(BPF_JSET, !NETLINK_KIND.cast_unsigned(), 1, 0),
        // The bit that `SOCK_RAW` and `SOCK_DGRAM` have in common.
        when(BPF_JSET, (libc::SOCK_RAW & libc::SOCK_DGRAM).cast_unsigned(), 1, 0),
        refuse(libc::ESOCKTNOSUPPORT),
        allow(),
    ];
    let family = [load(argument(0)), when(BPF_JEQ, libc::AF_NETLINK.cast_unsigned(), 0, looks.len() as u8)];
    family.into_iter().chain(looks).chain([load(NUMBER)]).collect()
}

/// Lets sockets of these families be made.
fn of_families(families: &[libc::c_int]) -> Vec<sock_filter> {
    let mut looks = vec![load(argument(0))];
    for (number, family) in families.iter().enumerate() {
        looks.push(when(BPF_JEQ, family.cast_unsigned(), (families.len() - number) as u8, 0));
    }
    looks.extend([refuse(libc::EAFNOSUPPORT), allow()]);
    looks
}

/// What is looked at for one call; what follows is jumped over for others.
fn for_call(program: &mut Vec<sock_filter>, call: libc::c_long, looks: &[sock_filter]) {
    program.push(when(BPF_JEQ, of(call), 0, looks.len() as u8));
    program.extend(looks);
}

fn of(call: libc::c_long) -> u32 {
    u32::try_from(call).expect("numbers of calls are small")
}

fn load(offset: usize) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset as u32)
}

fn refuse(error: libc::c_int) -> sock_filter {
    statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | error.cast_unsigned())
}

fn allow() -> sock_filter {
    statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW)
}

fn statement(code: u32, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

/// Jumps so many further where the comparison holds, and where not.
fn when(comparison: u32, value: u32, holds: u8, otherwise: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | comparison | BPF_K) as u16, jt: holds, jf: otherwise, k: value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::{BPF_RET, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_RAW, SOCK_SEQPACKET, SOCK_STREAM};

    /// Runs the filter on a call. Returns the number of the error that the caller would get, or 0.
    pub(super) fn answer(program: &[sock_filter], call: libc::c_long, arguments: [u64; 6]) -> u32 {
        let word = |offset: u32| match offset as usize {
            at if at == offset_of!(libc::seccomp_data, arch) => ARCHITECTURE,
            at if at == offset_of!(libc::seccomp_data, nr) => of(call),
            // The low half, on machines whose low half comes first.
            at => arguments[(at - offset_of!(libc::seccomp_data, args)) / size_of::<u64>()] as u32,
        };
        let (mut at, mut loaded) = (0, 0);
        loop {
            let line = program[at];
            let code = u32::from(line.code);
            at += 1;
            if code & 7 == BPF_LD {
                loaded = word(line.k);
            } else if code & 7 == BPF_RET {
                return if line.k == libc::SECCOMP_RET_ALLOW { 0 } else { line.k & libc::SECCOMP_RET_DATA };
            } else {
                assert_eq!(code & 7, BPF_JMP, "{code}");
                let holds = match code & 0xF0 {
                    BPF_JEQ => loaded == line.k,
                    BPF_JGE => loaded >= line.k,
                    kind => {
                        assert_eq!(kind, BPF_JSET);
                        loaded & line.k != 0
                    }
                };
                at += usize::from(if holds { line.jt } else { line.jf });
            }
        }
    }

    fn socket(program: &[sock_filter], family: libc::c_int, kind: libc::c_int, protocol: u64) -> i32 {
        let arguments = [family.cast_unsigned().into(), kind.cast_unsigned().into(), protocol, 0, 0, 0];
        answer(program, libc::SYS_socket, arguments).cast_signed()
    }

    #[test]
    fn netlink_lists_interfaces_and_nothing_else() {
        let program = program(families(true), false, false);
        for flags in [0, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_CLOEXEC | SOCK_NONBLOCK] {
            for kind in [SOCK_RAW, SOCK_DGRAM] {
                assert_eq!(socket(&program, libc::AF_NETLINK, kind | flags, 0), 0);
                for protocol in (1..64).chain([1 << 31, (1 << 32) + 9]) {
                    let answer = socket(&program, libc::AF_NETLINK, kind | flags, protocol);
                    assert_eq!(answer, libc::EPROTONOSUPPORT, "{protocol}");
                }
            }
            for kind in (0..16).filter(|kind| ![SOCK_RAW, SOCK_DGRAM].contains(kind)).chain([SOCK_RAW | 1 << 16]) {
                assert_eq!(socket(&program, libc::AF_NETLINK, kind | flags, 0), libc::ESOCKTNOSUPPORT, "{kind}");
            }
        }
        assert_eq!(socket(&program, libc::AF_INET, SOCK_STREAM, 6), 0);
        assert_eq!(socket(&program, libc::AF_ALG, SOCK_SEQPACKET, 0), libc::EAFNOSUPPORT);
        let pair = [libc::AF_NETLINK.cast_unsigned().into(), SOCK_RAW.cast_unsigned().into(), 0, 0, 0, 0];
        assert_eq!(answer(&program, libc::SYS_socketpair, pair).cast_signed(), libc::EAFNOSUPPORT);
        assert_eq!(answer(&program, libc::SYS_read, [0; 6]), 0);
    }

    /// Without a network there is nothing to list. A process that nests could also make changes.
    #[test]
    fn without_a_network_and_within_namespaces_there_is_no_netlink() {
        for program in [program(&[], false, false), program(families(true), false, true)] {
            assert_eq!(socket(&program, libc::AF_NETLINK, SOCK_RAW, 0), libc::EAFNOSUPPORT);
        }
    }
}
