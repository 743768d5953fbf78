//! Drives a real headless browser through a pipe by the DevTools protocol. Records every complaint of the browser and every address that it
//! requests.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PROGRAMS: [&str; 2] = ["chromium-headless-shell", "chromium"];
const ANSWERS: Duration = Duration::from_secs(120);

/// A browser with one page. Drop ends the process.
#[derive(Debug)]
pub(crate) struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    /// The DevTools session of the page.
    session: String,
    next: u64,
    heard: VecDeque<Value>,
    /// The browser's profile folder.
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Opens an empty page. The browser can reach no other machine.
    #[track_caller]
    pub(crate) fn open() -> Browser {
        let folder = tempfile::tempdir().unwrap();
        let program = PROGRAMS.into_iter().find(|program| {
            let version = Command::new(program).arg("--version").output();
            version.is_ok_and(|it| it.status.success())
        });
        let program = program.expect("no browser: run setup/browser.sh");
        // The browser reads commands at descriptor 3 and writes replies to descriptor 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"])
            .args([
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--no-first-run",
                "--remote-debugging-pipe",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            ])
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        let (heard, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else {
                    return;
                };
                if heard.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Browser {
            child,
            commands,
            messages,
            session: String::new(),
            next: 0,
            heard: VecDeque::new(),
            _folder: folder,
        };
        let target = browser.tell("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.tell("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.tell(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Navigates to an address.
    #[track_caller]
    pub(crate) fn go(&mut self, address: &str) {
        let gone = self.tell("Page.navigate", json!({"url": address}));
        assert!(gone["errorText"].is_null(), "{address}: {gone}");
    }

    /// Sets the width and height of the window, and dark or light colours.
    #[track_caller]
    pub(crate) fn window(&mut self, width: u32, height: u32, dark: bool) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.tell("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.tell("Emulation.setEmulatedMedia", features);
    }

    /// Evaluates an expression in the page.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut told = self.tell("Runtime.evaluate", asked);
        assert!(told["exceptionDetails"].is_null(), "{expression}: {told}");
        told["result"]["value"].take()
    }

    /// Evaluates an expression whose value must be a string.
    #[track_caller]
    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        let text = value.as_str();
        text.unwrap_or_else(|| panic!("{expression}: {value}"))
            .to_owned()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, expression: &str) {
        let deadline = Instant::now() + ANSWERS;
        while self.value(expression) != Value::Bool(true) {
            if Instant::now() > deadline {
                let page = self.value("document.body.innerText");
                panic!("never: {expression}\n{page}\n{:?}", self.complaints());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses a key as a keyboard does.
    #[track_caller]
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            _ => 0,
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = text.into();
            }
            self.tell("Input.dispatchKeyEvent", event);
        }
    }

    /// Types text at the cursor.
    #[track_caller]
    pub(crate) fn write(&mut self, text: &str) {
        self.tell("Input.insertText", json!({"text": text}));
    }

    /// A picture of the window, as PNG in base64.
    #[track_caller]
    pub(crate) fn picture(&mut self) -> String {
        let picture = self.tell("Page.captureScreenshot", json!({"format": "png"}));
        picture["data"].as_str().unwrap().to_owned()
    }

    /// Every complaint of the browser so far: script errors, refused loads, violations of the content policy.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        self.listen();
        let told = self.heard.iter().filter(|it| match it["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => it["params"]["entry"]["level"] == "error",
            Some("Runtime.consoleAPICalled") => it["params"]["type"] == "error",
            _ => false,
        });
        told.map(|it| it["params"].to_string()).collect()
    }

    /// Every address that the browser requested so far.
    pub(crate) fn asked(&mut self) -> Vec<String> {
        self.listen();
        let told = self.heard.iter();
        let told = told.filter(|it| it["method"] == "Network.requestWillBeSent");
        let addresses = told.map(|it| it["params"]["request"]["url"].as_str());
        addresses
            .map(|it| it.unwrap_or_default().to_owned())
            .collect()
    }

    fn listen(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            self.heard.push_back(message);
        }
    }

    #[track_caller]
    fn tell(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut command = json!({"id": self.next, "method": method, "params": params});
        if !self.session.is_empty() {
            command["sessionId"] = self.session.clone().into();
        }
        self.commands
            .write_all(format!("{command}\0").as_bytes())
            .unwrap();
        self.commands.flush().unwrap();
        let deadline = Instant::now() + ANSWERS;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(mut message) if message["id"] == self.next => {
                    assert!(message["error"].is_null(), "{method}: {message}");
                    return message["result"].take();
                }
                Ok(message) => self.heard.push_back(message),
                Err(RecvTimeoutError::Timeout) => panic!("{method}: the browser does not answer"),
                Err(RecvTimeoutError::Disconnected) => panic!("{method}: the browser has ended"),
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser's helper processes end with it.
        let _ = self
            .commands
            .write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
