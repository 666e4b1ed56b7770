//! What the kernel offers for running commands in a sandbox.

use std::fs;

use super::{Check, Status};

/// The kernels that brought each version of Landlock's interface: 1, 2, 3 …
const LANDLOCK_KERNELS: [(u32, u32); 7] = [(5, 13), (5, 19), (6, 2), (6, 7), (6, 10), (6, 12), (6, 15)];

/// What the agent's sandbox can use here.
pub(super) fn checks() -> Vec<Check> {
    if !cfg!(target_os = "linux") {
        return vec![Check::new("sandbox", Status::Missing, "only known on Linux")];
    }
    vec![landlock(), user_namespaces()]
}

fn landlock() -> Check {
    let missing = |text: &str| {
        let hint = "commands that only read ask for permission here instead of running in a sandbox";
        Check::new("landlock", Status::Missing, text).hint(hint)
    };
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = landlock_version(&release);
    match read("/sys/kernel/security/lsm") {
        Some(modules) if !modules.split(',').any(|module| module == "landlock") => {
            missing("not enabled in this kernel")
        }
        _ if version == 0 => missing(&format!("kernel {release} is too old")),
        Some(_) => Check::new("landlock", Status::Ok, format!("enabled, version {version} (kernel {release})")),
        // The list is only there where securityfs is mounted, which containers rarely do.
        None => Check::new("landlock", Status::Ok, format!("version {version}, if enabled (kernel {release})")),
    }
}

/// The version of Landlock's interface that a kernel has; 0 without any.
fn landlock_version(release: &str) -> usize {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let kernel = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    LANDLOCK_KERNELS.iter().filter(|first| kernel >= **first).count()
}

fn user_namespaces() -> Check {
    let is = |path: &str, value: &str| read(path).is_some_and(|text| text == value);
    let missing = |text: &str| Check::new("user_namespaces", Status::Missing, text);
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
        Ok(_) => Check::new("user_namespaces", Status::Ok, "available"),
        Err(_) => missing("not in this kernel"),
    }
}

fn read(path: &str) -> Option<String> {
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
