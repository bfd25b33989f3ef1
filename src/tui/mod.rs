//! The terminal toolkit; knows no agent.
//!
//! Rows, themes, keys, widgets and the painter that puts them on the screen.
//! Components convert state and a width to [`text::Row`]s; only [`term`] writes
//! to the terminal. Callers supply the content.

pub mod composer;
pub mod keymap;
pub mod markdown;
pub mod term;
pub mod text;
pub mod theme;
pub mod widgets;
