//! The files that Amazon's tools share: `~/.aws/credentials` and `~/.aws/config`.
//!
//! Format: <https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>.
//! If both files contain a setting of a profile, the credentials file wins.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::util::os;

use super::super::env::Env;
use super::remote::WebIdentity;
use super::{AwsError, FILE_LIMIT_BYTES, Keys, time_ms};

/// Maximum duration of a profile's own program, which may ask the user.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(120);

/// The files with the active profile.
pub(super) struct Files {
    credentials: Option<PathBuf>,
    config: Option<PathBuf>,
    /// `AWS_PROFILE`; a profile that it names must exist.
    chosen: Option<String>,
}

/// Settings of a profile in the files.
pub(super) struct Profile {
    pub(super) name: String,
    pub(super) region: Option<String>,
    pub(super) source: Option<Source>,
}

/// The source of a profile's keys.
pub(super) enum Source {
    Keys(Keys),
    /// A command that prints them.
    Process(String),
    WebIdentity(WebIdentity),
    /// The method's name, for the user.
    Unsupported(&'static str),
}

impl Files {
    pub(super) fn new(env: &Env, home: Option<&Path>) -> Self {
        let file =
            |variable: &str, name: &str| env.path(variable).or_else(|| Some(home?.join(".aws").join(name)));
        Self {
            credentials: file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            config: file("AWS_CONFIG_FILE", "config"),
            chosen: env.get("AWS_PROFILE").or_else(|| env.get("AWS_DEFAULT_PROFILE")),
        }
    }

    /// Whether the user has named a profile.
    pub(super) fn is_chosen(&self) -> bool {
        self.chosen.is_some()
    }

    /// The active profile, if the files contain it.
    ///
    /// # Errors
    /// If a file exists and cannot be read, or the named profile does not exist.
    pub(super) fn read(&self) -> Result<Option<Profile>, AwsError> {
        let name = self.chosen.as_deref().unwrap_or("default");
        let mut settings = HashMap::new();
        let mut is_there = false;
        for (file, section) in [(&self.config, config_section(name)), (&self.credentials, name.to_owned())] {
            let Some(path) = file else { continue };
            let text = match os::read_regular(path, FILE_LIMIT_BYTES) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(AwsError::File { path: path.clone(), problem: error.to_string() }),
            };
            if let Some(found) = section_of(&text, &section) {
                is_there = true;
                settings.extend(found);
            }
        }
        match &self.chosen {
            Some(name) if !is_there => Err(AwsError::NoProfile(name.clone())),
            _ => Ok(is_there.then(|| Profile::of(name, settings))),
        }
    }
}

fn config_section(name: &str) -> String {
    if name == "default" { name.to_owned() } else { format!("profile {name}") }
}

/// The settings under `[section]`, names in lower case; `None` if there is no
/// such section. Nested settings are ignored.
fn section_of(text: &str, section: &str) -> Option<HashMap<String, String>> {
    let mut found = None;
    let mut is_inside = false;
    for line in text.trim_start_matches('\u{feff}').lines() {
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            is_inside = header.0.split_whitespace().eq(section.split_whitespace());
            if is_inside {
                found.get_or_insert_with(HashMap::new);
            }
            continue;
        }
        let (Some(settings), Some((name, value))) =
            (found.as_mut().filter(|_| is_inside), line.split_once('='))
        else {
            continue;
        };
        // White space separates a comment at the end of a line from the value.
        let end = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| value.find(mark)).min();
        let value = value.get(..end.unwrap_or(value.len())).unwrap_or(value).trim();
        if !value.is_empty() {
            settings.insert(name.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    found
}

impl Profile {
    fn of(name: &str, mut settings: HashMap<String, String>) -> Self {
        let region = settings.remove("region");
        Self { name: name.to_owned(), region, source: Source::of(settings) }
    }
}

impl Source {
    fn of(mut settings: HashMap<String, String>) -> Option<Self> {
        let mut take = |name: &str| settings.remove(name);
        // A role may be assumed with keys in the same profile.
        if let Some(role_arn) = take("role_arn") {
            let Some(token_file) = take("web_identity_token_file") else {
                return Some(Self::Unsupported("an assumed role"));
            };
            let session = take("role_session_name");
            return Some(Self::WebIdentity(WebIdentity::new(token_file.into(), role_arn, session)));
        }
        if let Some((id, secret)) = take("aws_access_key_id").zip(take("aws_secret_access_key")) {
            let token = take("aws_session_token");
            return Some(Self::Keys(Keys { id, secret, token, ends_ms: None }));
        }
        if let Some(command) = take("credential_process") {
            return Some(Self::Process(command));
        }
        if take("login_session").is_some() {
            return Some(Self::Unsupported("aws login"));
        }
        ["sso_session", "sso_start_url", "sso_account_id"]
            .into_iter()
            .any(|name| take(name).is_some())
            .then_some(Self::Unsupported("SSO"))
    }
}

/// Runs the `credential_process` of a profile and reads the keys it prints.
/// Dropping the future ends the program.
///
/// # Errors
/// If it fails, takes too long or prints no keys.
pub(super) async fn run(profile: &str, command: &str) -> Result<Keys, AwsError> {
    let failed =
        |problem: &str| AwsError::Process { profile: profile.to_owned(), problem: problem.to_owned() };
    let running = tokio::process::Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PROCESS_TIMEOUT, running)
        .await
        .map_err(|_| failed("it ran too long"))?
        .map_err(|error| failed(&format!("cannot run it: {error}")))?;
    if !output.status.success() {
        return Err(failed(&format!("it exited with {}", output.status)));
    }
    // The output may contain a secret, so it is not quoted.
    let printed: Value =
        serde_json::from_slice(&output.stdout).map_err(|_| failed("it did not print JSON"))?;
    let field = |name: &str| printed.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let (id, secret) =
        field("AccessKeyId").zip(field("SecretAccessKey")).ok_or_else(|| failed("it printed no keys"))?;
    let ends_ms = field("Expiration").and_then(|time| time_ms(&time));
    Ok(Keys { id, secret, token: field("SessionToken"), ends_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_as_the_tools_do() {
        let text = "\u{feff}# top\nregion = lost\n[default]\nregion=us-east-1\n\n\
            [profile  work] ; mine\nRegion = eu-west-1 # home\noutput\ns3 =\n  region = nested\n; aside\n\
            credential_process = run --it 'a=b#c'\nempty =\n[profile work2]\nregion = x\n[profile work]\nextra = 1\n";
        let check = |section: &str, expected: Option<&[(&str, &str)]>| {
            let expected = expected.map(|pairs| {
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
            });
            assert_eq!(section_of(text, section), expected, "{section}");
        };
        check("default", Some(&[("region", "us-east-1")]));
        check(
            "profile work",
            Some(&[("region", "eu-west-1"), ("credential_process", "run --it 'a=b#c'"), ("extra", "1")]),
        );
        check("work", None);
    }

    #[test]
    fn profiles_come_to_keys_in_different_ways() {
        let check = |text: &str, expected: &str| {
            let source = Source::of(section_of(&format!("[p]\n{text}"), "p").unwrap());
            let actual = match &source {
                None => "none".to_owned(),
                Some(Source::Keys(keys)) => format!("keys {} {:?}", keys.id, keys.token),
                Some(Source::Process(command)) => format!("process {command}"),
                Some(Source::WebIdentity(_)) => "web identity".to_owned(),
                Some(Source::Unsupported(what)) => format!("unsupported {what}"),
            };
            assert_eq!(actual, expected, "{text}");
        };
        let keys = "aws_access_key_id = A\naws_secret_access_key = s\n";
        check("region = x", "none");
        check("aws_access_key_id = A", "none");
        check(keys, "keys A None");
        check(&format!("{keys}aws_session_token = t\nsso_session = s"), "keys A Some(\"t\")");
        check("credential_process = get", "process get");
        check(&format!("{keys}role_arn = r\nsource_profile = p"), "unsupported an assumed role");
        check("role_arn = r\nweb_identity_token_file = /f", "web identity");
        check("sso_session = s\nsso_account_id = 1", "unsupported SSO");
        check("sso_start_url = https://x", "unsupported SSO");
        check("login_session = arn", "unsupported aws login");
    }
}
