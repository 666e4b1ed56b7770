//! Where a path really leads.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many links are followed before a path counts as a ring.
const MOST_LINKS: usize = 40;

/// Follows every link and `..` of an absolute path as the system would, and
/// keeps the names of what does not exist yet. None when the links form a ring.
pub fn resolve(path: &Path) -> Option<PathBuf> {
    let mut ahead: VecDeque<OsString> = VecDeque::new();
    push_front(&mut ahead, path);
    let mut real = PathBuf::new();
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MOST_LINKS {
                    return None;
                }
                // The root in an absolute target takes the place of what is before it.
                push_front(&mut ahead, &target);
            }
            Err(_) => real = next,
        }
    }
    Some(real)
}

fn push_front(ahead: &mut VecDeque<OsString>, path: &Path) {
    let names = path.components().filter(|part| !matches!(part, Component::CurDir));
    for part in names.collect::<Vec<_>>().into_iter().rev() {
        ahead.push_front(part.as_os_str().to_owned());
    }
}
