//! The `pi` command.

use std::process::ExitCode;

// The allocator of musl is many times slower, above all with several threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pi::cli::main()
}
