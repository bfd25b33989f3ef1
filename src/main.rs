//! The `pi` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    pi::cli::main()
}
