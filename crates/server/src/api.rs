//! The paths under `/api`, one file each.

pub(crate) mod events;
pub(crate) mod items;
pub(crate) mod raw;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod status;
