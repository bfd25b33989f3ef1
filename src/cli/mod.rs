//! Command line: arguments in, a running mode out.
