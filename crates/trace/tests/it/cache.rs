//! Verdicts and simulation of the prompt cache.

mod kit;
mod simulation;
mod verdicts;
