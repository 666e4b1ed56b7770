//! Chats of `quipu serve` with `quipu-agent` and a scripted API.

mod harness;
mod turns;
