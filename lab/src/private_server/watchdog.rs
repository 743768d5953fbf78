//! Stops the server and removes its folder when this process dies without doing so itself.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The shell reads the server's pid, line by line as it changes, until the pipe closes, which the system does however this process ends.
/// It kills a process only if its command line has the private folder, so a reused pid is safe.
const SCRIPT: &str = r#"
folder=$1
last=
while read -r line; do last=$line; done
[ "$last" = dismissed ] && exit 0
ours() {
    [ -n "$last" ] && tr '\0' '\n' 2>/dev/null < "/proc/$last/cmdline" | grep -qF -- "$folder/"
}
ours && kill -TERM "$last"
tries=0
while ours && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
ours && kill -KILL "$last"
rm -rf -- "$folder"
"#;

/// A shell; its standard input is the pipe.
#[derive(Debug)]
pub(super) struct Watchdog {
    shell: Child,
}

impl Watchdog {
    pub(super) fn start(folder: &Path) -> io::Result<Watchdog> {
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "headwater-watchdog"])
            .arg(folder)
            // Ctrl-C in the terminal must not end the watchdog before the process that it watches.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Watchdog { shell })
    }

    /// Sets the process to stop; `None` if there is none.
    pub(super) fn set_server(&mut self, pid: Option<u32>) {
        match pid {
            Some(pid) => self.write_line(&format!("{pid}\n")),
            None => self.write_line("\n"),
        }
    }

    /// Dismisses the watchdog: the owner has stopped the server and removes the folder.
    pub(super) fn dismiss(&mut self) {
        self.write_line("dismissed\n");
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }

    fn write_line(&mut self, line: &str) {
        if let Some(pipe) = self.shell.stdin.as_mut() {
            // A lost watchdog cannot be replaced, and is not needed now.
            let _ = pipe.write_all(line.as_bytes());
        }
    }
}

impl Drop for Watchdog {
    /// Without [`Watchdog::dismiss`], the closed pipe lets the shell do its work.
    fn drop(&mut self) {
        if self.shell.stdin.take().is_some() {
            let _ = self.shell.wait();
        }
    }
}
