//! pi, an interactive coding agent for the terminal.
//!
//! The layers, lowest first; each imports only layers above it in this list
//! (`tests/it/layers.rs` keeps it so):

pub mod util;

pub mod ai;

pub mod agent;

pub mod tools;

pub mod config;

pub mod session;

pub mod tui;

pub mod modes;

pub mod cli;
