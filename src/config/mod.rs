//! What the user has configured, read from disk and environment.
