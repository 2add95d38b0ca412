//! The command line: which command, with what.
