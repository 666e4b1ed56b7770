//! Checks what the kernel offers for running commands in a sandbox.

use std::fs;

use super::{CheckResult, CheckStatus};

/// First kernel with each version of the Landlock ABI: 1, 2, 3 …
const LANDLOCK_KERNELS: [(u32, u32); 7] = [(5, 13), (5, 19), (6, 2), (6, 7), (6, 10), (6, 12), (6, 15)];

/// Checks the kernel features that the sandbox of the agent uses.
pub(super) fn sandbox_checks() -> Vec<CheckResult> {
    if !cfg!(target_os = "linux") {
        return vec![CheckResult::new("sandbox", CheckStatus::Missing, "only known on Linux")];
    }
    vec![check_landlock(), check_user_namespaces()]
}

fn check_landlock() -> CheckResult {
    let missing = |text: &str| {
        let hint = "commands that only read ask for permission here instead of running in a sandbox";
        CheckResult::new("landlock", CheckStatus::Missing, text).with_hint(hint)
    };
    let release = read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = landlock_version(&release);
    match read_trimmed("/sys/kernel/security/lsm") {
        Some(modules) if !modules.split(',').any(|module| module == "landlock") => {
            missing("not enabled in this kernel")
        }
        _ if version == 0 => missing(&format!("kernel {release} is too old")),
        Some(_) => {
            CheckResult::new("landlock", CheckStatus::Ok, format!("enabled, version {version} (kernel {release})"))
        }
        // The list exists only where securityfs is mounted, which is rare in containers.
        None => {
            CheckResult::new("landlock", CheckStatus::Ok, format!("version {version}, if enabled (kernel {release})"))
        }
    }
}

/// Version of the Landlock ABI of a kernel; 0 if it has none.
fn landlock_version(release: &str) -> usize {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let kernel = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    LANDLOCK_KERNELS.iter().filter(|first| kernel >= **first).count()
}

fn check_user_namespaces() -> CheckResult {
    let is = |path: &str, value: &str| read_trimmed(path).is_some_and(|text| text == value);
    let missing = |text: &str| CheckResult::new("user_namespaces", CheckStatus::Missing, text);
    if is("/proc/sys/user/max_user_namespaces", "0") {
        return missing("switched off (user.max_user_namespaces is 0)");
    }
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return missing("only for root (kernel.unprivileged_userns_clone is 0)");
    }
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return missing("restricted (kernel.apparmor_restrict_unprivileged_userns is 1)");
    }
    match fs::metadata("/proc/self/ns/user") {
        Ok(_) => CheckResult::new("user_namespaces", CheckStatus::Ok, "available"),
        Err(_) => missing("not in this kernel"),
    }
}

fn read_trimmed(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::landlock_version;

    #[test]
    fn kernels_have_the_interface_they_came_with() {
        for (release, version) in
            [("5.10.0-9-amd64", 0), ("5.13.1", 1), ("6.1.0", 2), ("6.8.0-45-generic", 4), ("x", 0)]
        {
            assert_eq!(landlock_version(release), version, "{release}");
        }
    }
}
