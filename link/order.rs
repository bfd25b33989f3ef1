//! Links what a usual session runs and reads together, so that the rest is never loaded.
//!
//! A page fault loads 64 kB around the address, and a session runs a sixth of the program, which
//! the linker would spread over all of it. `order.py` writes `order.txt`. A function that is missing
//! there, or that a compiler names otherwise, is linked where it would be without: the order never
//! changes what the program does. Constants have no lasting names, so those that are large and seldom
//! read are taken out instead: embedded files (`util::embedded`), and all of some crates.

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Objects whose constants are large tables, as the linker names them: first those of which
/// a session may read a part, then those that it does not need.
const TABLES: [&str; 12] = [
    "*libonig_sys-*:*unicode*.o",
    "*.regex_syntax-*",
    "*.unicode_normalization-*",
    "*.unicodeit-*",
    "*.nucleo_matcher-*",
    "*.idna-*",
    "*.h2-*",
    "*libring-*:*curve25519.o",
    "*libring-*:*p256-nistz.o",
    "*.arboard-*",
    "*.encoding_rs-*",
    "*.image-*",
];

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

/// A script that adds two sections to those of the linker: these functions in this order, and tables.
fn linker_script(names: &str) -> String {
    let functions: String =
        names.lines().map(|name| format!("    *(.text.{name} .text.unlikely.{name})\n")).collect();
    // Not the constants that the linker merges with those of others: `.rodata.cst16`, `.rodata.str1.1`.
    let tables: String = TABLES.map(|objects| format!("    {objects}(.rodata .rodata.[!cs]*)\n")).concat();
    format!(
        "SECTIONS\n{{\n  .text.session :\n  {{\n{functions}  }}\n}}\nINSERT BEFORE .text;\n\
         SECTIONS\n{{\n  .rodata.tables :\n  {{\n    *(.rodata.*EMBEDDED_FILE*)\n{tables}  }}\n}}\nINSERT AFTER .rodata;\n"
    )
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
