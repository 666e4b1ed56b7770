//! The other side of a call, played from a script or a recording.
