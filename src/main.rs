//! The `pi` command.

use std::process::ExitCode;

// The allocator of musl is many times slower, above all with several threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// glibc gives each thread a heap of its own and keeps what is freed there.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    pi::cli::main()
}
