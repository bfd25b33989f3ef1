//! The terminal toolkit; knows no agent.
//!
//! Rows, themes, keys, widgets and the painter that puts them on the screen.
//! Components turn state and a width into [`text::Row`]s; only [`term`] writes
//! to the terminal. What the rows are about is the caller's business.

pub mod composer;
pub mod keymap;
pub mod markdown;
pub mod term;
pub mod text;
pub mod theme;
pub mod widgets;
