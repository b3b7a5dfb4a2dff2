//! The drivers of real clients: what the manifest says about them, their installation, and the lines they speak.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use serde::Deserialize;

use super::tee::Exchange;

/// One entry of `drivers.json`; what the fields mean stands in the README beside it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) language: String,
    pub(crate) toolchain: Vec<String>,
    pub(crate) install: Vec<String>,
    run: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    pub(crate) reads: String,
    pub(crate) delta: bool,
    pub(crate) status: bool,
    #[serde(default = "yes")]
    pub(crate) registers: bool,
    /// Speaks the lines of this project's own client, and takes several servers.
    #[serde(default)]
    pub(crate) more: bool,
    /// Is told of changes by a server of ours, and reads no deltas there.
    #[serde(default)]
    pub(crate) follows: bool,
    pub(crate) seconds: Option<u64>,
    pub(crate) only_path: Option<String>,
    #[serde(default)]
    pub(crate) notes: String,
}

fn yes() -> bool {
    true
}

impl Client {
    /// The same one, which logs under this name.
    pub(crate) fn named(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self.clone()
        }
    }
}

/// The clients that the manifest lists; those first that take their time, so that nobody waits for them at the end.
pub(crate) fn manifest() -> Result<Vec<Client>> {
    let path = sources().join("drivers.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let read = serde_json::from_str::<Vec<Client>>(&text);
    let mut clients = read.with_context(|| path.display().to_string())?;
    clients.sort_by_key(|client| Reverse(client.seconds));
    Ok(clients)
}

pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/drivers")
}

/// Where cargo put this program, and puts what it builds as that.
pub(crate) fn built() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Which of the commands that a client needs this machine lacks.
pub(crate) fn missing(toolchain: &[String]) -> Option<&str> {
    toolchain
        .iter()
        .map(String::as_str)
        .find(|command| !on_path(command))
}

/// Downloading and building one client on a slow machine.
const INSTALL: Duration = Duration::from_secs(20 * 60);

/// How an installation ended, once it has.
type Installation = Arc<OnceLock<Result<(), String>>>;

/// A copy of the drivers, where they are installed and run.
pub(crate) struct Workshop {
    root: PathBuf,
    /// One installation each, shared by the clients that name the same command.
    installed: Mutex<HashMap<Vec<String>, Installation>>,
}

impl Workshop {
    /// Copies the drivers, and the gRPC examples, to `root`, leaving what was installed there before.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        fs::create_dir_all(root.join("logs"))
            .with_context(|| format!("cannot write to {}", root.display()))?;
        let root = root.canonicalize()?;
        copy_changed(&sources(), &root)?;
        for folder in ["grpc-api/examples", "grpc-api/proto"] {
            copy_changed(&crate::root().join(folder), &root.join(folder))?;
        }
        Ok(Self {
            root,
            installed: Mutex::default(),
        })
    }

    /// Installs a client by its command, once for all clients that share it.
    pub(crate) fn install(&self, name: &str, command: &[String]) -> Result<(), String> {
        let command = self.filled(command);
        if command.is_empty() {
            return Ok(());
        }
        let once = {
            let mut installed = self.installed.lock();
            Arc::clone(installed.entry(command.clone()).or_default())
        };
        let log = self.log(&format!("{name}-install"));
        once.get_or_init(|| run_to_end(&command, &log)).clone()
    }

    /// Starts the client's driver.
    pub(crate) fn start(&self, client: &Client, settings: &[(&str, String)]) -> Result<Driver> {
        let mut env: Vec<_> = client
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), self.fill(value)))
            .collect();
        env.extend_from_slice(settings);
        self.launch(&client.name, &client.run, &env)
    }

    /// Starts a program that logs under a name.
    pub(crate) fn launch(&self, name: &str, argv: &[String], env: &[(&str, String)]) -> Result<Driver> {
        let argv = self.filled(argv);
        let Some((program, arguments)) = argv.split_first() else {
            bail!("{name} names no command")
        };
        let log = self.log(name);
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(&self.root)
            .envs(env.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let (send, lines) = mpsc::channel();
        let stdin = child.stdin.take();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Driver {
            child,
            stdin,
            lines,
            log,
        })
    }

    /// Writes down what a client and the server said, for whoever looks into a failure.
    pub(crate) fn write_wire(&self, client: &str, exchanges: &[Exchange]) {
        let mut text = String::new();
        for Exchange { request, response } in exchanges {
            text += &format!("> {} {}\n", request.method, request.target);
            if !request.body.is_empty() {
                text += &format!("> {}\n", String::from_utf8_lossy(&request.body));
            }
            match response {
                Some(response) => text += &format!("< {}\n< {}\n\n", response.status, response.text()),
                None => text += "< no answer\n\n",
            }
        }
        // A log that cannot be written must not spoil the run.
        let _ = fs::write(self.log(&format!("{client}-wire")), text);
    }

    fn filled(&self, argv: &[String]) -> Vec<String> {
        argv.iter().map(|argument| self.fill(argument)).collect()
    }

    fn fill(&self, text: &str) -> String {
        text.replace("{work}", &self.root.to_string_lossy())
            .replace("{root}", &crate::root().to_string_lossy())
            .replace("{built}", &built().to_string_lossy())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.root.join("logs").join(format!("{name}.log"))
    }
}

/// A running driver; ends with this value.
pub(crate) struct Driver {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Driver {
    /// The id under which the client registers, once it has been started.
    pub(crate) fn registering(&self, patience: Duration) -> Result<String, String> {
        let line = self.line(patience)?;
        let rest = line
            .strip_prefix("registering ")
            .ok_or_else(|| format!("the driver said {line:?}"))?;
        let settings: serde_json::Value =
            serde_json::from_str(rest).map_err(|error| format!("the driver said {line:?}: {error}"))?;
        let id = settings["id"].as_str().map(str::to_owned);
        id.ok_or_else(|| format!("the driver named no id: {line:?}"))
    }

    /// Sends one line and waits for its answer.
    pub(crate) fn ask(&mut self, line: &str, patience: Duration) -> Result<String, String> {
        let stdin = self.stdin.as_mut().ok_or("the driver has no input")?;
        let sent = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        sent.map_err(|error| format!("the driver does not listen: {error}{}", self.seen_in_log()))?;
        let answer = self.line(patience)?;
        match answer.strip_prefix("error") {
            Some(why) => Err(format!("{line}:{why}")),
            None => Ok(answer),
        }
    }

    /// Asks the program to end, as whoever runs it would (SIGTERM).
    pub(crate) fn terminate(&self) {
        let _ = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .stderr(Stdio::null())
            .status();
    }

    /// Waits for the program to end by itself, and says with which code.
    pub(crate) fn ended(&mut self, patience: Duration) -> Result<Option<i32>, String> {
        let start = Instant::now();
        while start.elapsed() < patience {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status.code()),
                Ok(None) => thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("it does not end{}", self.seen_in_log()))
    }

    /// What it wrote to standard error.
    pub(crate) fn complaints(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The next line that the program writes.
    pub(crate) fn line(&self, patience: Duration) -> Result<String, String> {
        self.lines.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => format!("no word from the driver{}", self.seen_in_log()),
            RecvTimeoutError::Disconnected => format!("the driver ended{}", self.seen_in_log()),
        })
    }

    fn seen_in_log(&self) -> String {
        format!(", see {}", self.log.display())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The end of its input asks the driver to leave.
        self.stdin.take();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(5) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        kill_group(&mut self.child);
    }
}

fn run_to_end(command: &[String], log: &Path) -> Result<(), String> {
    let failed = |why: String| format!("its installation failed ({why}), see {}", log.display());
    let Some((program, arguments)) = command.split_first() else {
        return Ok(());
    };
    let out = File::create(log).map_err(|error| failed(error.to_string()))?;
    let err = out.try_clone().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err);
    let mut child = command
        .process_group(0)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(failed(status.to_string())),
            Err(error) => return Err(failed(error.to_string())),
            Ok(None) if start.elapsed() > INSTALL => {
                kill_group(&mut child);
                return Err(failed(format!(
                    "not done after {} minutes",
                    INSTALL.as_secs() / 60
                )));
            }
            Ok(None) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Ends a command with everything that it has started.
fn kill_group(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill")
        .args(["-KILL", "--", &group])
        .stderr(Stdio::null())
        .status();
    let _ = child.wait();
}

fn on_path(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).is_file())
}

/// Copies a folder; a file that is the same already keeps its time, so that builds beside it stay fresh.
pub(crate) fn copy_changed(from: &Path, to: &Path) -> Result<()> {
    const BUILT: [&str; 4] = ["node_modules", "target", "venv", "__pycache__"];
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if BUILT.iter().any(|built| name == OsStr::new(built)) {
            continue;
        }
        let copy = to.join(&name);
        if entry.file_type()?.is_dir() {
            copy_changed(&path, &copy)?;
        } else if fs::read(&copy).ok() != Some(fs::read(&path)?) {
            fs::copy(&path, &copy)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_can_be_read_and_its_names_are_unique() {
        let clients = manifest().unwrap();
        let mut names: Vec<_> = clients.iter().map(|client| client.name.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), clients.len());
        assert!(!names.is_empty());
    }

    #[test]
    fn a_missing_command_is_named() {
        assert!(on_path("sh"));
        let toolchain = ["sh".to_owned(), "no-such-command-anywhere".to_owned()];
        assert_eq!(missing(&toolchain), Some("no-such-command-anywhere"));
    }
}
