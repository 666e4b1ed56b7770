//! `quipu-agent` against recordings of the real program: the same command, stdin and
//! answers of the API, and then the same lines on stdout and in the session file.
//!
//! What differs is listed, with reasons, in `docs/compat.md`; the list is exact.

mod announcements;
mod background;
mod bad_input;
mod command_environment;
mod compat_docs;
mod control;
mod entry_chain;
mod flags;
mod hardening;
mod host_options;
mod interrupt;
mod isolation;
mod kill;
mod line_shape;
mod locked_session;
mod managed_settings;
mod mcp_servers;
mod model_parameters;
mod oversized_media;
mod permission_modes;
mod play_recording;
mod prompt_expansion;
mod recording;
mod repository_settings;
mod request_log;
mod request_shape;
mod resumed_files;
mod sandbox;
mod scripted_agent;
mod scripted_cases;
mod settings_links;
mod telemetry;
mod work_folder;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use recording::Recording;

/// Recordings that are not played, and why.
const NOT_PLAYED: [(&str, &str); 2] = [
    ("07b_todo_old_cli", "an older version of the program, which writes other lines"),
    ("37_old_cli_2.1.197", "an older version of the program, which writes other lines"),
];

/// Declares a test for each recording.
macro_rules! recordings {
    ($($name:ident),+ $(,)?) => {
        const PLAYED: &[&str] = &[$(stringify!($name)),+];
        $(
            #[test]
            #[allow(non_snake_case, reason = "named like the recording's folder")]
            fn $name() {
                play(stringify!($name));
            }
        )+
    };
}

recordings! {
    r01_plain, r02_thinking_multiblock, r03_tools_file, r04_parallel_tools, r05_tool_error, r06_permission_denied,
    r07_todo, r08_subagent, r09_subagent_background, r10_resume_continue_fork, r11_partial, r12_retry_429_529,
    r13_api_error_400, r13b_api_error_401, r14_overloaded_exhausted, r14b_500_exhausted, r15_cut_stream,
    r15b_sse_error_midstream, r16_max_turns, r17_max_budget, r18_structured, r18b_structured_never, r19_max_tokens,
    r20_refusal, r21_json_output, r22_compact_manual, r23_compact_auto, r24_slash_commands, r25_image_document,
    r26_malformed_a_badjson, r26_malformed_b_unknown_type, r26_malformed_c_no_message, r26_malformed_d_empty_line,
    r26_malformed_e_bad_role, r26_malformed_f_unknown_control, r26_malformed_g_array, r27_settings_hooks,
    r28_replay_queue, r29_mcp_stdio, r30_plan_mode, r32_mention_memory, r33_session_id, r34_side_requests,
    r35_bypass_root, r36_bash_background, r40_sdk_hooks, r41_sdk_can_use_tool, r42_sdk_mcp, r43_sdk_interrupt,
    r44_sdk_control_methods, r45_sdk_rewind, r46_sdk_query_many_options, r50_control_all_subtypes,
    r51_permission_raw, r52_interrupt_while_permission_pending, r54_stdin_eof_midturn, r55_sigint_midturn,
    r57_ts_sdk, r58_sdk_session_store_mirror, r60_prompt_suggestion_title, r61_tool_progress, r63_output_style,
    r64_thinking_env, r65_origin, r66_mirror_subagent, r67_flag_agent, r67_flag_autocompact, r67_flag_bare,
    r67_flag_debugfile, r67_flag_exclude, r67_flag_noprompts, r67_flag_restricted, r67_flag_safe, r68_websearch,
    r69_continue_none, r70_snapshot_resume, r71_worktree, r72_auto_mode, r73_toolsearch, r74_user_rules,
    r80_edit_failures, r84_rules_mix,
}

#[test]
fn every_recording_is_played_or_excused() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let folders = std::fs::read_dir(shared.join("recordings")).unwrap().flatten().filter(|e| e.path().is_dir());
    let found: BTreeSet<String> = folders.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    let played = PLAYED.iter().map(|name| name[1..].to_owned());
    let known: BTreeSet<String> = played.chain(NOT_PLAYED.iter().map(|(name, _)| (*name).to_owned())).collect();
    assert_eq!(found, known);
}

#[test]
fn only_recordings_that_are_played_have_differences_listed() {
    for name in compat_docs::listed() {
        assert!(PLAYED.contains(&format!("r{name}").as_str()), "docs/compat.md lists {name}, which is not played");
    }
}

/// Plays a recording and compares what comes of it.
fn play(test: &str) {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let name = &test[1..];
    let recording = Recording::load(&shared.join("recordings").join(name));
    let played = play_recording::play(&recording);
    let mut found = String::new();
    let pairs = line_shape::compare(&recording, &played).into_iter().chain(request_shape::compare(&recording, &played));
    let mut known_lines = BTreeSet::new();
    for (what, theirs, ours) in pairs {
        let mut difference = compat_docs::difference(&theirs, &ours);
        if what.starts_with("request ") {
            difference = request_shape::without_history(&difference, &mut known_lines);
        }
        if !difference.is_empty() {
            writeln!(found, "{what}:\n{difference}").unwrap();
        }
    }
    let found = found.trim_end();
    let listed = compat_docs::of(name);
    assert!(
        found == listed,
        "{name} differs from the recording otherwise than docs/compat.md says.\n\nfound:\n{found}\n\nlisted:\n{listed}\n\nstderr:\n{}",
        played.stderr
    );
}
