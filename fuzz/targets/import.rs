//! Any bytes as a capture file or session file: nothing panics, ids are unique, and a problem
//! is reported or every call is kept.

#![no_main]

use std::collections::HashSet;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use quipu_trace::TraceBuilder;

fuzz_target!(|bytes: &[u8]| {
    let mut builder = TraceBuilder::default();
    if builder.import_reader(Path::new("fuzz"), bytes).is_err() {
        return;
    }
    let trace = builder.finish();
    let ids: HashSet<&str> = trace.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), trace.calls.len());
    for (index, call) in trace.calls.iter().enumerate() {
        assert_eq!(call.index, index);
        assert!(call.source < trace.sources.len());
        for key in call.request.iter().flat_map(|request| &request.messages) {
            trace.prompts.message(*key);
        }
    }
    assert!(trace.problems.iter().all(|problem| problem.source < trace.sources.len()));
});
