//! Converts a policy to a Seatbelt profile for macOS.

use std::fmt::Write as _;
use std::path::Path;

use super::policy::{NetworkAccess, Policy};

/// Rules that every program needs to start.
const BASE_RULES: &str = "\
(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))
(allow file-read-metadata)
(allow file-read* (literal \"/\") (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/random\") \
(literal \"/dev/urandom\") (subpath \"/dev/fd\"))
(allow file-write-data (literal \"/dev/null\"))
(allow file-read* (subpath \"/System\") (subpath \"/Library\") (subpath \"/private/etc\") \
(subpath \"/private/var/db/dyld\"))
";

/// Builds the profile of a policy. The last matching rule wins, so denials come last.
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "made everywhere so that it is tested everywhere"))]
pub(super) fn seatbelt_profile(policy: &Policy) -> String {
    let mut text = BASE_RULES.to_owned();
    for path in policy.readable.iter().chain(&policy.executable) {
        push_rule(&mut text, "allow file-read*", path);
    }
    for path in policy.writable.iter().chain([&policy.temp_folder]) {
        push_rule(&mut text, "allow file-read* file-write*", path);
    }
    text.push_str("(deny file-write-setugid)\n");
    if !policy.allows_attribute_changes {
        text.push_str("(deny file-write-mode file-write-owner file-write-flags file-write-times file-write-xattr)\n");
    }
    for path in &policy.read_only {
        push_rule(&mut text, "deny file-write*", path);
    }
    for path in &policy.pinned {
        let _ = writeln!(text, "(deny file-write-unlink (literal \"{}\"))", quote(path));
    }
    for path in &policy.covered {
        push_rule(&mut text, "deny file-read* file-write*", path);
    }
    match policy.network {
        NetworkAccess::None => {}
        NetworkAccess::Internet => text.push_str("(allow network* (remote ip) (local ip))\n"),
        NetworkAccess::WithUnixSockets => text.push_str("(allow network*)\n"),
    }
    text
}

fn push_rule(text: &mut String, action: &str, path: &Path) {
    let _ = writeln!(text, "({action} (subpath \"{}\"))", quote(path));
}

fn quote(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_grants_folders_and_takes_refused_files_away() {
        let policy = Policy {
            readable: vec!["/w".into()],
            executable: vec!["/usr".into()],
            covered: vec!["/w/a \"b\"\\c".into()],
            temp_folder: "/t".into(),
            ..Policy::default()
        };
        insta::assert_snapshot!(seatbelt_profile(&policy));
    }

    #[test]
    fn a_workspace_is_written_but_for_what_is_guarded() {
        let policy = Policy {
            executable: vec!["/".into()],
            writable: vec!["/w".into()],
            read_only: vec!["/w/.git".into()],
            network: NetworkAccess::Internet,
            allows_attribute_changes: true,
            temp_folder: "/t".into(),
            ..Policy::default()
        };
        insta::assert_snapshot!(seatbelt_profile(&policy));
    }
}
