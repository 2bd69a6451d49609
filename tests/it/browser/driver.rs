//! A browser driven over the protocol `WebDriver` (W3C), with commands of Chromium's own for emulation and screenshots.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The accessibility checker axe-core, and its digest.
const AXE: &str = include_str!("../../assets/axe-4.14.1.min.js");
const AXE_SHA256: &str = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c";

/// Key of the id of an element (`WebDriver`, section 12.1).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Time after which what a test waits for counts as missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// The process of `chromedriver`, shared by the tests that run at the same time.
struct Driver {
    process: Child,
    /// Its output, which must stay open.
    _output: Lines<BufReader<ChildStdout>>,
    url: String,
    /// The folder of the browsers' profiles.
    profiles: tempfile::TempDir,
}

/// A browser with a profile of its own. It ends when it is dropped.
pub(super) struct Browser {
    driver: Arc<Driver>,
    client: reqwest::Client,
    session: String,
    process: Pid,
}

impl Driver {
    /// Returns the running driver, or starts it; `None` if it is not installed.
    fn shared() -> Option<Arc<Self>> {
        static RUNNING: Mutex<Weak<Driver>> = Mutex::new(Weak::new());
        let mut running = RUNNING.lock().unwrap();
        let driver = running.upgrade().or_else(|| Self::start().map(Arc::new))?;
        *running = Arc::downgrade(&driver);
        Some(driver)
    }

    fn start() -> Option<Self> {
        let mut command = Command::new("chromedriver");
        let process = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut process = match process {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            process => process.unwrap(),
        };
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        // The first line with a port has the 0 of the argument.
        let port = |line: String| line.rsplit_once("on port ")?.1.trim_end_matches('.').parse::<u16>().ok();
        let port = output.by_ref().map_while(Result::ok).filter_map(port).find(|port| *port > 0).unwrap();
        let url = format!("http://127.0.0.1:{port}");
        Some(Self { process, _output: output, url, profiles: tempfile::tempdir().unwrap() })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Browser {
    /// Starts a browser; `None` if there is none, unless `FORMS_REQUIRE_BROWSER` is set.
    pub(super) async fn start() -> Option<Self> {
        let Some(driver) = Driver::shared() else {
            assert!(std::env::var_os("FORMS_REQUIRE_BROWSER").is_none(), "chromedriver is not installed");
            // Not `println!`, which a test that passes does not show.
            io::stderr().write_all(b"skipped: install chromium and chromium-driver\n").unwrap();
            return None;
        };
        let profile = driver
            .profiles
            .path()
            .join(forms::id::FormId::draw(&forms::secret::SystemRandomness).to_string());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-crash-reporter",
            "--disable-dev-shm-usage",
            &format!("--user-data-dir={}", profile.display()),
        ];
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"implicit": PATIENCE.as_millis(), "script": PATIENCE.as_millis()},
        }}});
        let client = client();
        let url = format!("{}/session", driver.url);
        let begun = send(client.post(url).body(capabilities.to_string())).await.unwrap();
        let process = i32::try_from(begun["capabilities"]["goog:processID"].as_i64().unwrap()).unwrap();
        let session = begun["sessionId"].as_str().unwrap().to_owned();
        Some(Self { driver, client, session, process: Pid::from_raw(process).unwrap() })
    }

    /// Carries out a command of `WebDriver` and returns its value.
    async fn command(&self, name: &str, parameters: Value) -> Value {
        self.try_command(name, &parameters).await.unwrap()
    }

    async fn try_command(&self, name: &str, parameters: &Value) -> Result<Value, String> {
        let url = format!("{}/session/{}/{name}", self.driver.url, self.session);
        send(self.client.post(url).body(parameters.to_string())).await
    }

    /// Carries out a command of the Chrome `DevTools` Protocol.
    pub(super) async fn devtools(&self, name: &str, parameters: Value) -> Value {
        self.command("goog/cdp/execute", json!({"cmd": name, "params": parameters})).await
    }

    pub(super) async fn open(&self, url: &str) {
        self.command("url", json!({"url": url})).await;
    }

    pub(super) async fn back(&self) {
        self.command("back", json!({})).await;
    }

    pub(super) async fn reload(&self) {
        self.command("refresh", json!({})).await;
    }

    /// Evaluates an expression in the page.
    pub(super) async fn eval(&self, expression: &str) -> Value {
        self.command("execute/sync", json!({"script": format!("return {expression}"), "args": []})).await
    }

    /// Waits until an expression is true in the page, which may still be that before a change of pages.
    pub(super) async fn wait_until(&self, expression: &str) {
        let script = json!({"script": format!("return Boolean({expression})"), "args": []});
        let started = Instant::now();
        while self.try_command("execute/sync", &script).await != Ok(true.into()) {
            assert!(started.elapsed() < PATIENCE, "{expression}");
        }
    }

    /// Returns the path of the first element that `selector` selects, once there is one.
    async fn element(&self, selector: &str) -> Value {
        self.command("element", json!({"using": "css selector", "value": selector})).await
    }

    /// Waits until there is an element that `selector` selects.
    pub(super) async fn wait_for(&self, selector: &str) {
        self.element(selector).await;
    }

    pub(super) async fn click(&self, selector: &str) {
        let element = self.element(selector).await;
        self.command(&format!("element/{}/click", element[ELEMENT].as_str().unwrap()), json!({})).await;
    }

    /// Replaces what is in a field by `text`.
    pub(super) async fn fill(&self, selector: &str, text: &str) {
        let element = self.element(selector).await;
        let path = format!("element/{}", element[ELEMENT].as_str().unwrap());
        self.command(&format!("{path}/clear"), json!({})).await;
        self.command(&format!("{path}/value"), json!({"text": text})).await;
    }

    /// Directs the next commands to the frame that `selector` selects.
    pub(super) async fn enter_frame(&self, selector: &str) {
        let element = self.element(selector).await;
        self.command("frame", json!({"id": element})).await;
    }

    /// Directs the next commands to the whole page.
    pub(super) async fn leave_frame(&self) {
        self.command("frame", json!({"id": null})).await;
    }

    pub(super) async fn set_width(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    pub(super) async fn emulate_dark(&self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        // Without motion, since a colour on its way has no contrast yet.
        let features = json!({"features": [
            {"name": "prefers-color-scheme", "value": value},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]});
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// Returns the rules of axe that the page breaks, each with the first element that does.
    pub(super) async fn axe(&self) -> Vec<String> {
        let hash: String =
            digest(&SHA256, AXE.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, AXE_SHA256);
        self.command("execute/sync", json!({"script": AXE, "args": []})).await;
        let script = "const done = arguments[0];
            const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
            axe.run(document, { runOnly: { type: 'tag', values: tags } })
                .then(found => done(found.violations.map(one => one.id + ' ' + one.nodes[0].html)))";
        let found = self.command("execute/async", json!({"script": script, "args": []})).await;
        serde_json::from_value(found).unwrap()
    }

    /// Writes a screenshot of the page in two widths and its HTML, as it was received, to `target/screens`.
    pub(super) async fn save(&self, name: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/screens");
        fs::create_dir_all(&folder).unwrap();
        for width in [360, 1280] {
            self.set_width(width, 800).await;
            let height = self.eval("document.documentElement.scrollHeight").await.as_u64().unwrap();
            self.set_width(width, u32::try_from(height).unwrap()).await;
            let picture = self.devtools("Page.captureScreenshot", json!({"format": "png"})).await;
            let picture = STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
            fs::write(folder.join(format!("{name}-{width}.png")), picture).unwrap();
        }
        self.devtools("Emulation.clearDeviceMetricsOverride", json!({})).await;
        fs::write(folder.join(format!("{name}.html")), self.html().await).unwrap();
    }

    /// Returns the page's HTML as it was received. Of an answer to a POST, which the browser does not keep, as it is now.
    async fn html(&self) -> String {
        if self.eval("document.querySelector('[data-sent]') !== null").await == true {
            let html = self.eval("'<!doctype html>' + document.documentElement.outerHTML").await;
            return html.as_str().unwrap().to_owned();
        }
        let frame = self.devtools("Page.getFrameTree", json!({})).await["frameTree"]["frame"].clone();
        let resource = json!({"frameId": frame["id"], "url": frame["url"]});
        let html = self.devtools("Page.getResourceContent", resource).await;
        html["content"].as_str().unwrap().to_owned()
    }

    /// Fails if the page in view breaks a rule of axe in the light or dark scheme, does not fit 320 pixels, has loaded anything
    /// from another origin or set a cookie. Saves it as `name`.
    pub(super) async fn check(&self, name: &str) {
        for is_dark in [false, true] {
            self.emulate_dark(is_dark).await;
            assert_eq!(self.axe().await, [""; 0], "{name}, dark: {is_dark}");
        }
        self.emulate_dark(false).await;
        self.set_width(320, 800).await;
        let width = self.eval("document.documentElement.scrollWidth").await.as_u64().unwrap();
        assert!(width <= 320, "{name} has {width} columns");
        let foreign = "performance.getEntriesByType('resource').map(one => one.name)
                .filter(url => !url.startsWith(location.origin) && !url.startsWith('data:'))";
        assert_eq!(self.eval(foreign).await, json!([]), "{name}");
        let url = format!("{}/session/{}/cookie", self.driver.url, self.session);
        assert_eq!(send(self.client.get(url)).await, Ok(json!([])), "{name}");
        self.save(name).await;
    }

    /// Fails if the console has warnings or errors, besides those about the status of an answer.
    pub(super) async fn expect_quiet_console(&self) {
        let log = self.command("se/log", json!({"type": "browser"})).await;
        let is_status =
            |entry: &Value| entry["message"].as_str().unwrap().contains("Failed to load resource");
        let is_counted = |entry: &&Value| entry["level"] != "INFO" && !is_status(entry);
        let messages: Vec<_> = log.as_array().unwrap().iter().filter(is_counted).collect();
        assert!(messages.is_empty(), "{messages:?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended_already = kill_process(self.process, Signal::KILL);
    }
}

#[expect(clippy::disallowed_methods, reason = "calls the driver on this machine")]
fn client() -> reqwest::Client {
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Sends a request to the driver and returns the value of its answer, or the error in it.
async fn send(request: reqwest::RequestBuilder) -> Result<Value, String> {
    let answer = request.header("content-type", "application/json").send().await.unwrap();
    let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    match &body["value"] {
        Value::Object(value) if value.contains_key("error") => Err(format!("{value:?}")),
        value => Ok(value.clone()),
    }
}
