//! Links the functions that run in a usual session together, so that the others are never loaded.
//!
//! A page fault loads 64 kB around the function, and a session runs a sixth of the program, which
//! the linker would spread over all of it. `order.py` writes `order.txt`. A function that is missing
//! there, or that a compiler names otherwise, is linked where it would be without: the order never
//! changes what the program does.

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Tells cargo how to link the program, as far as the linker of this build can. Only optimised
/// programs for Linux are ordered.
///
/// # Errors
/// If `order.txt` cannot be read or `out` not written.
pub(crate) fn link_in_order(out: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed=link/order.rs");
    println!("cargo::rerun-if-changed=link/order.txt");
    if variable("CARGO_CFG_TARGET_OS") != "linux" || variable("PROFILE") != "release" {
        return Ok(());
    }
    let script = out.join("order.ld");
    fs::write(&script, linker_script(&fs::read_to_string("link/order.txt")?))?;
    let order = format!("-Wl,-T,{}", script.display());
    // The addresses in tables of pointers take a hundredth of the room, and are not read at the start.
    for argument in [&*order, "-Wl,-z,pack-relative-relocs"] {
        if runs_with(argument, out) {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
    Ok(())
}

/// A script that adds a section to those of the linker, with these functions in this order.
fn linker_script(names: &str) -> String {
    let lines = names.lines().map(|name| format!("    *(.text.{name} .text.unlikely.{name})\n"));
    let lines: String = lines.collect();
    format!("SECTIONS\n{{\n  .text.session :\n  {{\n{lines}  }}\n}}\nINSERT BEFORE .text;\n")
}

/// Whether a program that is linked with this argument runs on this machine: a linker may not know
/// it, and an old system may not know what it does.
fn runs_with(argument: &str, out: &Path) -> bool {
    let (source, program) = (out.join("probe.rs"), out.join("probe"));
    let mut compiler = Command::new(variable("RUSTC"));
    let linker = variable("RUSTC_LINKER");
    if !linker.is_empty() {
        compiler.arg(format!("-Clinker={linker}"));
    }
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    compiler.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    compiler.args(["--target", &variable("TARGET")]);
    compiler.arg(format!("-Clink-arg={argument}")).arg(&source).arg("-o").arg(&program);
    fs::write(&source, "fn main() {}").is_ok()
        && succeeds(&mut compiler)
        && succeeds(&mut Command::new(&program))
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts in the environment")]
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
