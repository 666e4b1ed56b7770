//! The name a model is priced by.

/// Strips what platforms put around a model's name: a `-YYYYMMDD`, `@YYYYMMDD`
/// or `[1m]` suffix, and Bedrock's region, vendor, version and profile ARN.
///
/// Nothing else is lost, so `claude-opus-4-9` or `claude-3-5-haiku-latest` stay
/// themselves and are not mistaken for a sibling.
pub fn base_name(model: &str) -> &str {
    let name = model.strip_suffix("[1m]").unwrap_or(model);
    let name = bedrock_name(name).unwrap_or(name);
    without_date(name, '@').or_else(|| without_date(name, '-')).unwrap_or(name)
}

/// The middle of `us.anthropic.claude-…-v1:0`, alone or at the end of an ARN.
fn bedrock_name(id: &str) -> Option<&str> {
    let id = match id.strip_prefix("arn:") {
        Some(arn) => arn.rsplit_once('/')?.1,
        None => id,
    };
    let name = match id.strip_prefix("anthropic.") {
        Some(name) => name,
        None => {
            let (region, rest) = id.split_once('.')?;
            let is_region = region.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            rest.strip_prefix("anthropic.").filter(|_| is_region)?
        }
    };
    Some(without_version(name).unwrap_or(name))
}

/// Newer ids end in `-v1`, older ones in `-v1:0`, some in neither.
fn without_version(name: &str) -> Option<&str> {
    let (base, version) = name.rsplit_once("-v")?;
    let (major, minor) = version.split_once(':').unwrap_or((version, "0"));
    (is_number(major) && is_number(minor)).then_some(base)
}

fn without_date(name: &str, mark: char) -> Option<&str> {
    let (base, date) = name.rsplit_once(mark)?;
    (date.len() == 8 && date.starts_with("20") && is_number(date)).then_some(base)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
