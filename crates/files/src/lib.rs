//! Files, folders and symbols of a working folder, for completion while a user types.
//!
//! ```text
//!   walk_unignored ──→ FileList::scan ──→ find("srvmain") → src/server/main.rs
//!                            └──────────→ SymbolList::scan → find("parse") → fn parse_line
//! ```
//!
//! ```
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("main.rs"), "fn parse_line() {}\n")?;
//! let files = quipu_files::FileList::scan(folder.path());
//! assert_eq!(files.find("mn.rs", 10)[0].path, "main.rs");
//! let symbols = quipu_files::SymbolList::scan(folder.path(), &files);
//! assert_eq!(symbols.find("parse", 10)[0].name, "parse_line");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! | I want to … | look at |
//! |---|---|
//! | walk a folder without what `.gitignore` names | [`walk_unignored`] |
//! | find files and folders by some characters of their path | [`FileList`] |
//! | find definitions in source files by name | [`SymbolList`] |
//!
//! Lists are snapshots: scan again for files that appeared since. Nothing here follows links or
//! reads files that never end (devices, pipes).

// A failed unwrap is a failed test.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod file_list;
mod fuzzy;
mod symbols;
mod walk;

pub use file_list::{FileKind, FileList, FileMatch};
pub use symbols::{SymbolKind, SymbolList, SymbolMatch};
pub use walk::{MAX_IGNORE_FILE_BYTES, has_too_many_braces, walk_unignored};
