//! Chats of `quipu serve` with `quipu-agent` and a scripted API.

mod access;
mod capture;
mod demo;
mod files;
mod harness;
mod lifetime;
mod prompts;
mod rewind;
mod turns;
