//! pi, an interactive coding agent for the terminal, as a library.
//!
//! [`session::SessionBuilder`] opens a session inside another program:
//!
//! ```
//! use pi::session::SessionBuilder;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (project, agent_dir) = (folder.path(), folder.path().join("agent"));
//! let mut session = SessionBuilder::new(project, agent_dir).model("demo/pi").start().await?;
//! let answer = session.prompt("create hello.txt with hello world").await?;
//! println!("{}", answer.text());
//! session.close().await?;
//! assert_eq!(std::fs::read_to_string(project.join("hello.txt"))?.trim(), "hello world");
//! # Ok(())
//! # }
//! ```
//!
//! `docs/library.md` leads through the programs in `examples`: tools, providers and front
//! ends of your own, steering, reading sessions, several sessions.
//!
//! | module | for programs that |
//! |---|---|
//! | [`session`] | run, read, list and export sessions |
//! | [`agent`] | define tools, or run the loop without a session |
//! | [`ai`] | make messages, requests and providers, or convert conversations |
//! | [`tools`] | use the built-in tools |
//! | [`config`] | read settings, keys and `models.json` |
//!
//! The other modules make the program `pi` of these; they may change at any time. The
//! declarations below are in the order of the layers: each module imports only those above
//! it (`tests/it/layers.rs` keeps it so).

#![warn(missing_docs)]

#[doc(hidden)]
pub mod util;

pub mod ai;

pub mod agent;

pub mod tools;

pub mod config;

pub mod session;

#[doc(hidden)]
pub mod tui;

#[doc(hidden)]
pub mod modes;

#[doc(hidden)]
pub mod cli;
