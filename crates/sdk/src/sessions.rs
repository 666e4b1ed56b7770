//! The sessions on disk: listed, read, named, tagged, deleted and forked.
