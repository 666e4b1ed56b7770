//! The capture proxy and its file.

mod faults;
mod harness;
mod secrets;
mod storage;
