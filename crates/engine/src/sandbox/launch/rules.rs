//! Landlock: which files may be opened for what.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    Scope, path_beneath_rules,
};

use super::{Network, Policy};

/// The oldest version that knows truncation: with less, files could be emptied.
const LEAST: ABI = ABI::V3;
/// The newest version this was written for; what the kernel lacks of it is left out.
const NEWEST: ABI = ABI::V9;

/// Devices that hold nothing.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Gives up all access to files but what the policy grants.
pub(super) fn restrict(policy: &Policy) -> Result<(), RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST))?;
    if policy.network == Network::None {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    rules
        .create()?
        .add_rules(path_beneath_rules(&policy.read, read))?
        .add_rules(path_beneath_rules(&policy.execute, read | AccessFs::Execute))?
        .add_rules(path_beneath_rules(policy.write.iter().chain([&policy.temp]), all))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile))?
        .add_rules(path_beneath_rules(["/dev/null"], AccessFs::WriteFile | AccessFs::Truncate))?
        .restrict_self()?;
    Ok(())
}
