//! Chats of `quipu serve` with `quipu-agent` and a scripted API.

mod demo;
mod harness;
mod turns;
