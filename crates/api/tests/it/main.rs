//! The client and the answerer, talking to each other.
