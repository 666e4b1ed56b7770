//! Landlock: which files may be opened, and for what.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use super::mounts::open_without_links;
use super::{NetworkAccess, Policy};

/// Oldest supported version; earlier ones do not restrict truncation.
const MIN_ABI: ABI = ABI::V3;
/// Newest version whose access rights are used, as far as the kernel supports them.
const MAX_ABI: ABI = ABI::V9;

/// Devices that may be used in every profile.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Gives up all file access except what the policy grants.
pub(super) fn restrict_files(policy: &Policy) -> Result<(), RulesetError> {
    let all = AccessFs::from_all(MAX_ABI);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(MIN_ABI))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(MAX_ABI))?;
    if policy.network == NetworkAccess::None {
        rules = rules.handle_access(AccessNet::from_all(MAX_ABI))?;
    }
    rules
        .create()?
        .add_rules(rules_for(&policy.readable, read))?
        .add_rules(rules_for(&policy.executable, read | AccessFs::Execute))?
        .add_rules(rules_for(policy.writable.iter().chain([&policy.temp_folder]), all))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile))?
        .add_rules(path_beneath_rules(["/dev/null"], AccessFs::WriteFile | AccessFs::Truncate))?
        .restrict_self()?;
    Ok(())
}

/// Returns rules for what is below resolved paths. Paths that do not exist or lead through a link are left out:
/// another command may have put it there.
fn rules_for<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<OwnedFd>, RulesetError>> {
    let opened = paths.into_iter().filter_map(|path| open_without_links(path).ok());
    opened.map(move |opened| {
        let kind = rustix::fs::fstat(&opened).map(|data| rustix::fs::FileType::from_raw_mode(data.st_mode));
        let is_folder = kind.is_ok_and(|kind| kind.is_dir());
        let access = if is_folder { access } else { access & AccessFs::from_file(MAX_ABI) };
        Ok(PathBeneath::new(opened, access))
    })
}
