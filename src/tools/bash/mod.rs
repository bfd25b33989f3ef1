//! The `bash` tool: runs a command for the model and streams its output.
//!
//! [`shell`] defines how a command is started, for the model and for the user;
//! `util::process` kills it and reads its output.

mod shell;

use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, MissedTickBehavior};

use crate::agent::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Touches};
use crate::ai::{ConstrainedSampling, ContentBlock};
use crate::util::process::{End, Event, Running};

use super::output::Tail;

pub use shell::{BashConfig, CommandLimits, SessionVars, ShellError};

/// Partial output is reported at most this often.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// The sentence of the description that a default timeout replaces.
const NO_TIMEOUT: &str = "There is no timeout unless timeout (in seconds) is set.";

/// What a shell returns for a command that SIGKILL ended.
const SIGKILL_CODE: i32 = 137;

/// The longest timer of the original, in seconds: 2^31 - 1 milliseconds.
const MAX_TIMEOUT_SECS: f64 = 2_147_483.647;

/// Runs commands for the model.
#[derive(Debug)]
pub struct Bash {
    spec: ToolSpec,
    config: BashConfig,
}

impl Bash {
    /// The tool for one session.
    pub fn new(config: BashConfig) -> Self {
        let description = include_str!("bash.md").trim_ascii();
        let (description, default) = match config.limits.default_timeout {
            Some(timeout) => {
                let secs = timeout.as_secs_f64();
                let rule = format!(
                    "A command is killed after {secs} seconds unless timeout is set; set it for commands that need longer."
                );
                (description.replace(NO_TIMEOUT, &rule), format!("default: {secs}"))
            }
            None => (description.to_owned(), "default: never".to_owned()),
        };
        let spec = ToolSpec {
            name: "bash".to_owned(),
            description,
            snippet: Some("Run a shell command".to_owned()),
            guidelines: Vec::new(),
            parameters: json!({
                "type": "object",
                "required": ["command"],
                "properties": {
                    "command": { "type": "string", "description": "Command line to run" },
                    "timeout": {
                        "type": "number",
                        "description": format!("Seconds after which the command is killed ({default})"),
                    },
                },
            }),
            constrained_sampling: Some(ConstrainedSampling::prefer_schema()),
        };
        Self { spec, config }
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn touches(&self, arguments: &Value, _cwd: &Path) -> Touches {
        arguments["command"].as_str().map_or_else(Touches::undeclared, Touches::runs)
    }

    fn run<'a>(&'a self, arguments: Value, cx: ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments: Arguments = super::parse(arguments)?;
            super::check_cancelled(&cx.cancel)?;
            let limits = &self.config.limits;
            let timeout = arguments.timeout.map(timeout).transpose()?;
            let is_default = timeout.is_none();
            let timeout = timeout.or(limits.default_timeout);
            let line = limits.applied_to(&arguments.command);
            let mut command = self.config.prepare(&line, cx.cwd, &cx.cancel).await?;
            command.env.extend(cx.environment.iter().cloned());
            command.timeout = timeout;
            let running = self.config.start(&command, cx.cancel.clone())?;
            cx.progress.report(ToolOutput::default());
            let mut tail = Tail::new(&self.config.temp_dir);
            let end = follow(running, &mut tail, &cx).await;
            let timeout = TimeoutUsed { secs: timeout.unwrap_or_default().as_secs_f64(), is_default };
            Ok(finish(&tail, end, timeout))
        })
    }
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<f64>,
}

fn timeout(secs: f64) -> Result<Duration, ToolError> {
    if secs > 0.0 && secs <= MAX_TIMEOUT_SECS {
        return Ok(Duration::from_secs_f64(secs));
    }
    Err(ToolError(format!(
        "Invalid timeout: must be a number of seconds greater than 0 and at most {MAX_TIMEOUT_SECS}"
    )))
}

/// Collects the output until the command ends, and reports it at intervals.
async fn follow(mut running: Running, tail: &mut Tail, cx: &ToolCx<'_>) -> End {
    let mut ticks = tokio::time::interval_at(Instant::now() + REPORT_INTERVAL, REPORT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut has_news = false;
    loop {
        tokio::select! {
            _ = ticks.tick(), if has_news => {
                cx.progress.report(partial(tail));
                has_news = false;
            }
            event = running.next() => match event {
                Event::Output(bytes) => {
                    tail.push(&bytes);
                    has_news = true;
                }
                Event::Ended(end) => {
                    tail.close();
                    return end;
                }
            },
        }
    }
}

fn partial(tail: &Tail) -> ToolOutput {
    let truncation = tail.truncation();
    let content = vec![ContentBlock::text(truncation.content.as_str())];
    let details = if truncation.truncated { details(tail) } else { json!({}) };
    ToolOutput { content, details: Some(details), ..ToolOutput::default() }
}

/// The timeout of a command.
#[derive(Debug, Clone, Copy)]
struct TimeoutUsed {
    secs: f64,
    /// Whether the call did not set it.
    is_default: bool,
}

fn finish(tail: &Tail, end: End, timeout: TimeoutUsed) -> ToolOutput {
    let truncation = tail.truncation();
    let mut text = truncation.content.clone();
    if text.is_empty() && matches!(end, End::Exited(_)) {
        text.push_str("(no output)");
    }
    let status = match end {
        End::Exited(0) => None,
        End::Exited(SIGKILL_CODE) => Some(format!(
            "Command exited with code {SIGKILL_CODE}: it was killed (SIGKILL), most likely because memory ran out"
        )),
        End::Exited(code) => Some(format!("Command exited with code {code}")),
        End::Cancelled => Some("Command aborted".to_owned()),
        End::TimedOut { command_exited } => Some(timed_out(timeout, command_exited)),
    };
    for part in [tail.notice(&truncation), status].into_iter().flatten() {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&part);
    }
    let details = truncation.truncated.then(|| details(tail));
    ToolOutput { details, is_error: end != End::Exited(0), ..ToolOutput::text(text) }
}

fn timed_out(timeout: TimeoutUsed, command_exited: bool) -> String {
    let mut text = format!("Command timed out after {} seconds", timeout.secs);
    if timeout.is_default && !command_exited {
        text.push_str(
            ", the default. Set timeout for a command that needs longer, or start it in the background.",
        );
    }
    if command_exited {
        text.push_str(
            ". The command itself had finished; background processes it started kept writing output.",
        );
    }
    text
}

fn details(tail: &Tail) -> Value {
    let mut details = Map::new();
    details.insert("truncation".to_owned(), json!(tail.truncation()));
    if let Some(path) = tail.full_output_path() {
        details.insert("fullOutputPath".to_owned(), json!(path.to_string_lossy()));
    }
    Value::Object(details)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_positive_and_not_too_long() {
        for secs in [0.0, -1.0, f64::NAN, f64::INFINITY, 2_147_484.0] {
            assert!(timeout(secs).is_err(), "{secs}");
        }
        assert_eq!(timeout(0.5), Ok(Duration::from_millis(500)));
        assert!(timeout(MAX_TIMEOUT_SECS).is_ok());
    }

    #[test]
    fn description_names_the_default_timeout_and_how_to_set_another() {
        let limits =
            CommandLimits { default_timeout: Some(Duration::from_secs(600)), ..CommandLimits::default() };
        let tool = Bash::new(BashConfig { limits, ..BashConfig::new("/tmp".into()) });
        let description = &tool.spec().description;
        assert!(description.contains("killed after 600 seconds unless timeout is set"), "{description}");
        assert!(!description.contains(NO_TIMEOUT), "{description}");
    }

    #[track_caller]
    fn check(output: &str, end: End, text: &str, is_error: bool) {
        let mut tail = Tail::new(std::path::Path::new("/nonexistent"));
        tail.push(output.as_bytes());
        tail.close();
        let expected = ToolOutput { is_error, ..ToolOutput::text(text) };
        let timeout = TimeoutUsed { secs: 1.5, is_default: false };
        assert_eq!(finish(&tail, end, timeout), expected);
    }

    #[test]
    fn the_result_ends_with_how_the_command_ended() {
        check("hi\n", End::Exited(0), "hi\n", false);
        check("", End::Exited(0), "(no output)", false);
        check("hi\n", End::Exited(3), "hi\n\n\nCommand exited with code 3", true);
        let killed =
            "Command exited with code 137: it was killed (SIGKILL), most likely because memory ran out";
        check("", End::Exited(137), &format!("(no output)\n\n{killed}"), true);
        check("", End::Cancelled, "Command aborted", true);
        check("x", End::TimedOut { command_exited: false }, "x\n\nCommand timed out after 1.5 seconds", true);
    }
}
