//! Front ends; each is a client of a session handle.
