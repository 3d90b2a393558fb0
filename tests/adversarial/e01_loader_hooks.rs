//! E-01: the host was started with hooks of the dynamic loader and of the C library.
//! Outcome: no command gets one, and none is heeded.
//! Switched off: the filter on names (`backend/environment.rs`, `build`): every test of this file failed.

use crate::environment::find;

#[rustfmt::skip]
const NAMES: &[&str] = &[
    "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_DEBUG", "LD_DEBUG_OUTPUT", "LD_PROFILE", "LD_PROFILE_OUTPUT",
    "LD_BIND_NOW", "LD_ORIGIN_PATH", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES",
    "RES_OPTIONS", "LOCALDOMAIN", "MALLOC_CHECK_", "MALLOC_PERTURB_", "MALLOC_TRACE", "MALLOC_CONF",
    "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH",
];

#[test]
fn no_hook_of_the_loader_reaches_a_command() {
    // A library that is not there makes the loader complain wherever it is asked for.
    find(NAMES, "ls / > /dev/null; /bin/true").assert_none_of(NAMES);
}
