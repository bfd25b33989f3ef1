//! The terminal toolkit; knows no agent.
