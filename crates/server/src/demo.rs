//! The sessions of `quipu serve --demo`.

use std::fs;
use std::io;
use std::path::Path;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "demo"]
struct DemoSessions;

/// Writes the bundled sessions to a folder, which is then a config folder of an agent.
pub fn write_demo_sessions(folder: &Path) -> io::Result<()> {
    for name in DemoSessions::iter() {
        let path = folder.join(&*name);
        if let (Some(parent), Some(file)) = (path.parent(), DemoSessions::get(&name)) {
            fs::create_dir_all(parent)?;
            fs::write(path, file.data)?;
        }
    }
    Ok(())
}
