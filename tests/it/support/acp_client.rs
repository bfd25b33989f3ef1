//! A client of the Agent Client Protocol, such as an editor has one.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::path::Path;
use std::process::ExitStatus;

use serde_json::{Value, json};

use super::pty::TestHome;
use super::rpc_client::{Reads, RpcClient};

/// The program in ACP mode.
pub(crate) struct AcpClient {
    lines: RpcClient,
    last_id: i64,
}

impl AcpClient {
    /// Starts the program; nothing is sent.
    pub(crate) fn start(home: &TestHome, args: &[&str]) -> Self {
        Self { lines: RpcClient::start(home, &[&["acp"], args].concat()), last_id: 0 }
    }

    /// As [`Self::start`]; the returned function starts reading.
    pub(crate) fn start_unread(home: &TestHome, args: &[&str]) -> (Self, impl FnOnce() + use<>) {
        let (lines, read) = RpcClient::start_with(home, &[&["acp"], args].concat(), Reads::Later);
        (Self { lines, last_id: 0 }, read)
    }

    /// Starts the program and initializes the connection.
    pub(crate) fn connect(home: &TestHome, capabilities: Value) -> Self {
        let mut client = Self::start(home, &[]);
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        assert!(client.call("initialize", params)["result"].is_object());
        client
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = Value::from(self.last_id);
        self.raw(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.raw(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Answers a request of the program.
    pub(crate) fn reply(&mut self, request: &Value, result: Value) {
        self.raw(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    pub(crate) fn raw(&mut self, line: &Value) {
        self.lines.send(line);
    }

    pub(crate) fn raw_text(&mut self, text: &str) {
        self.lines.send_raw(text);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.lines.pid()
    }

    pub(crate) fn next(&self) -> Option<Value> {
        self.lines.next()
    }

    pub(crate) fn next_text(&self) -> Option<String> {
        self.lines.next_text()
    }

    /// All lines up to one that `is_last`.
    pub(crate) fn until(&self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        self.lines.until(is_last)
    }

    /// All lines up to the response to the request with this id.
    pub(crate) fn until_response(&self, id: &Value) -> Vec<Value> {
        self.until(|line| line.get("method").is_none() && line["id"] == *id)
    }

    /// The next request of the program with this method.
    pub(crate) fn asked(&self, method: &str) -> Value {
        self.until(|line| line["method"] == method).pop().unwrap()
    }

    /// Sends a request and returns its response, without what comes before.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.until_response(&id).pop().unwrap()
    }

    /// Starts a session in the user's project and returns its id.
    pub(crate) fn new_session(&mut self, home: &TestHome) -> String {
        let response = self.call("session/new", in_folder(&home.project()));
        response["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
    }

    /// Sends a prompt and returns its id.
    pub(crate) fn send_prompt(&mut self, session: &str, text: &str) -> Value {
        self.send("session/prompt", prompt(session, text))
    }

    /// Sends a prompt and waits for the end of its run: updates, and the response.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> (Vec<Value>, Value) {
        let id = self.send_prompt(session, text);
        let mut lines = self.until_response(&id);
        let response = lines.pop().unwrap();
        (updates(&lines), response)
    }

    /// Closes the input and reads to the end.
    pub(crate) fn finish(self) -> (Vec<Value>, ExitStatus, String) {
        self.lines.finish()
    }
}

pub(crate) fn in_folder(cwd: &Path) -> Value {
    json!({ "cwd": cwd, "mcpServers": [] })
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

/// The updates among `lines`.
pub(crate) fn updates(lines: &[Value]) -> Vec<Value> {
    let updates = lines.iter().filter(|line| line["method"] == "session/update");
    updates.map(|line| line["params"]["update"].clone()).collect()
}

/// Those of one kind.
pub(crate) fn of_kind<'u>(updates: &'u [Value], kind: &str) -> Vec<&'u Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
}

/// The texts of chunks of one kind, joined.
pub(crate) fn text_of(updates: &[Value], kind: &str) -> String {
    of_kind(updates, kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
}
