//! `quipu export`

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use quipu_render::{Html, Markdown, Redactor};
use quipu_transcript::load;

use crate::args::{ExportArgs, Global};
use crate::error::Failure;
use crate::output::Output;
use crate::sessions;
use crate::show::about;
use crate::time::local_time;

pub(crate) fn run(args: &ExportArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let path = sessions::find(&args.session, global)?;
    let talk = load(&path)?;
    let (mut items, mut about) = (talk.for_ui(), about(&talk));
    let mut redactor = Redactor::default();
    if args.redact {
        items.iter_mut().for_each(|item| redactor.item(item));
        for fact in [&mut about.title, &mut about.cwd].into_iter().flatten() {
            *fact = redactor.text(fact).into_owned();
        }
    }
    let text = match args.to.extension().and_then(|ext| ext.to_str()) {
        Some("html" | "htm") => Html { about, local: local_time, ..Html::default() }.render(&items),
        Some("md" | "markdown") => {
            Markdown { about, full: true, local: local_time, ..Markdown::default() }.render(&items)
        }
        Some("json") => serde_json::to_string(&items)? + "\n",
        _ => {
            let message = format!("cannot tell the format of '{}'", args.to.display());
            return Err(Failure::usage("usage.export_form", message, "end its name in .html, .md or .json"));
        }
    };
    write(&args.to, text.as_bytes()).with_context(|| format!("cannot write {}", args.to.display()))?;
    if global.json {
        output.json(&serde_json::json!({ "path": args.to, "items": items.len(), "masked": redactor.counts() }))?;
    } else if !global.quiet {
        let mut stderr = anstream::stderr().lock();
        let _ = writeln!(stderr, "{} items written to {}", items.len(), args.to.display());
        if args.redact {
            let list: Vec<String> = redactor.counts().iter().map(|(name, n)| format!("{n} × {name}")).collect();
            let list = if list.is_empty() { "nothing".to_owned() } else { list.join(", ") };
            let _ = writeln!(stderr, "masked: {list}; look it over before you share it");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file whole or not at all, readable by its owner alone.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
