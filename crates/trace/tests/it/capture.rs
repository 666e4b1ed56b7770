//! The capture proxy and its file.

mod faults;
mod harness;
mod import;
mod secrets;
mod storage;
