//! `find-canary PATH ...`: searches files and directories for the canary of `TOOLCRIB_CANARY`; `tests/run` does so with what its tests have left.

use std::path::Path;
use std::process::ExitCode;
use toolcrib_tests::canary;

fn main() -> ExitCode {
    let mut is_clean = true;
    for root in std::env::args_os().skip(1) {
        for find in canary::search(Path::new(&root)) {
            println!("{}: {find}", root.display());
            is_clean = false;
        }
    }
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
