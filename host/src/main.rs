//! The program: parse, run, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolcrib::cli::main()
}
