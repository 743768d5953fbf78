//! Empty data folders: created once for each server version in the user's cache, then copied.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::sync::{Mutex, PoisonError};

use super::package_folder;
use super::programs::ServerPrograms;
use super::{PrivateServerError, ServerKind, last_lines};

/// Increment this when templates of the same server version are created differently.
const FORMAT: u32 = 1;
/// MySQL's server UUID: every copy has to generate a new one.
const IDENTITY: &str = "auto.cnf";

/// Makes names of databases and tables case-insensitive. MySQL fixes it when a data folder is created.
pub(super) const LOWER_CASE_NAMES: &str = "--lower-case-table-names=1";

/// Fills `data`, which must not exist yet, with an empty data folder for a server with these options.
pub(super) fn copy_into(
    programs: &ServerPrograms,
    data: &Path,
    options: &[&str],
) -> Result<(), PrivateServerError> {
    let template = template(programs, options.contains(&LOWER_CASE_NAMES))?;
    copy_tree(&template, data).map_err(PrivateServerError::io(format!(
        "copy {} to {}",
        template.display(),
        data.display()
    )))
}

fn template(programs: &ServerPrograms, folds: bool) -> Result<PathBuf, PrivateServerError> {
    // One at a time in this process. Two processes may do this at once: each creates its own, and the first rename wins.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);

    let templates = package_folder::cache_folder().join("templates");
    let kind = programs.kind();
    let folds = folds && kind == ServerKind::Mysql;
    let suffix = if folds { "-folded" } else { "" };
    let name = format!("{}-{}-{FORMAT}{suffix}", kind.name(), programs.version());
    let finished = templates.join(&name);
    if finished.is_dir() {
        return Ok(finished);
    }

    let partial = templates.join(format!("{name}.{}", process::id()));
    let making = || PrivateServerError::io(format!("make {}", partial.display()));
    let data = partial.join("data");
    let accounts = partial.join("accounts.sql");
    let log = partial.join("log");
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial).map_err(making())?;
    fs::write(&accounts, programs.first_statements()).map_err(making())?;
    let output = File::create(&log).map_err(making())?;
    let errors = output.try_clone().map_err(making())?;
    let status = programs
        .initialise(&data, &accounts)
        .args(folds.then_some(LOWER_CASE_NAMES))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status()
        .map_err(making())?;
    let result = if status.success() {
        match fs::rename(&data, &finished) {
            Err(source) if !finished.is_dir() => Err(making()(source)),
            _ => Ok(finished),
        }
    } else {
        let log = last_lines(&log);
        Err(PrivateServerError::Initialise { kind, log })
    };
    let _ = fs::remove_dir_all(&partial);
    result
}

/// Copies folders and files only: a data folder that was never served has no sockets.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if entry.file_name() != IDENTITY {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
