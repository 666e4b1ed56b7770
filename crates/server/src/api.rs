//! The paths under `/api`.

pub(crate) mod calls;
pub(crate) mod changes;
pub(crate) mod chat_control;
pub(crate) mod chat_events;
pub(crate) mod chat_rewind;
pub(crate) mod chats;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod find;
pub(crate) mod items;
pub(crate) mod labels;
pub(crate) mod overview;
pub(crate) mod raw;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod status;
pub(crate) mod timeline;
pub(crate) mod turns;
pub(crate) mod usage;
