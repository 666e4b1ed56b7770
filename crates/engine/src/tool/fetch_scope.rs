//! Which network addresses WebFetch may connect to.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Network addresses that WebFetch may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FetchScope {
    /// Only addresses of the public internet.
    #[default]
    Public,
    /// Also addresses of this machine and its local networks.
    Any,
}

/// The address is not on the public internet.
#[derive(Debug, thiserror::Error)]
#[error("{host} is not on the public internet, so it is not fetched")]
pub(crate) struct PrivateAddressError {
    host: String,
}

/// Checks the host of a URL: literal addresses and names that are local by convention.
/// Addresses that names resolve to are checked by [`ScopedResolver`].
pub(crate) fn check_url(url: &Url, reach: FetchScope) -> Result<(), PrivateAddressError> {
    let private = || PrivateAddressError { host: url.host_str().unwrap_or("the URL").to_owned() };
    let public = match url.host() {
        _ if reach == FetchScope::Any => true,
        Some(Host::Ipv4(ip)) => is_public(ip.into()),
        Some(Host::Ipv6(ip)) => is_public(ip.into()),
        Some(Host::Domain(name)) => is_public_name(name),
        None => false,
    };
    if public { Ok(()) } else { Err(private()) }
}

/// Whether a host name could belong to the public internet.
fn is_public_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let local = ["localhost", "local", "internal", "intranet", "lan", "home.arpa", "localdomain"];
    name.contains('.') && !local.iter().any(|end| name == *end || name.ends_with(&format!(".{end}")))
}

/// DNS resolver that fails for names with an address outside the scope.
#[derive(Debug, Clone, Copy)]
pub struct ScopedResolver(pub FetchScope);

impl Resolve for ScopedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            // One private address is enough to refuse: an attacker may mix in public ones.
            if reach == FetchScope::Public && !found.iter().all(|address| is_public(address.ip())) {
                let private = PrivateAddressError { host: name.as_str().to_owned() };
                return Err(Box::new(private) as Box<dyn Error + Send + Sync>);
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Whether an address belongs to the public internet.
///
/// ```
/// use quipu_engine::testing::tool::is_public;
/// assert!(is_public("93.184.216.34".parse()?));
/// assert!(!is_public("169.254.169.254".parse()?));
/// assert!(!is_public("::ffff:10.0.0.1".parse()?));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    !matches!(
        ip.octets(),
        [0 | 10 | 127, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 168, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [224..=255, ..]
    )
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let parts = ip.segments();
    let inner = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // IPv4 addresses embedded in IPv6: mapped, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inner(high, low),
        [0x2002, high, low, ..] => inner(high, low),
        // Protocol assignments and documentation ranges.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}
