//! `pi auth check` and the commands that print a key: what scripts ask before and beside a run.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Builder;

use crate::ai::{Credential, Model};
use crate::config::{CredentialError, KeySource};
use crate::modes;

use super::reference::{Suggested, providers};
use super::start::Setup;

/// What is checked: a provider, or that of a model.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct Checked {
    /// The provider
    #[arg(long, value_name = "NAME", value_parser = Suggested(providers), hide_possible_values = true)]
    provider: Option<String>,
    /// A model, whose provider is meant
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

/// Whether a provider can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready(&'static str),
    NotReady,
    Invalid(&'static str),
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Ready(_) => "ready",
            Self::NotReady => "not_ready",
            Self::Invalid(_) => "invalid",
        }
    }

    fn exit_code(self) -> ExitCode {
        match self {
            Self::Ready(_) => ExitCode::SUCCESS,
            Self::NotReady => ExitCode::from(1),
            Self::Invalid(_) => ExitCode::from(2),
        }
    }
}

const NOT_FOUND: &str = "provider_not_found";
const INVALID: &str = "invalid_state";

/// Runs `pi auth check`. With `may_renew`, an account's token that has expired is renewed.
pub(super) fn check(
    setup: &Setup,
    checked: &Checked,
    may_renew: bool,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let (provider, status, problem) = match find(setup, checked) {
        Err(problem) => (checked.name().to_owned(), Status::Invalid(NOT_FOUND), Some(problem)),
        Ok(model) => {
            let (status, problem) = match credential(setup, &model, may_renew)? {
                Ok(credential) => (Status::Ready(kind(&credential)), None),
                Err(error) => (status_of(&error), Some(error.to_string())),
            };
            (model.provider.clone(), status, problem)
        }
    };
    if is_json {
        let mut line = json!({ "status": status.name(), "provider": provider });
        match status {
            Status::Ready(kind) => line["authType"] = kind.into(),
            Status::NotReady => line["reason"] = "credentials_not_configured".into(),
            Status::Invalid(reason) => line["reason"] = reason.into(),
        }
        modes::say(&line.to_string());
    } else {
        modes::say(status.name());
    }
    if let Some(problem) = problem {
        modes::report_notes(&[problem]);
    }
    Ok(status.exit_code())
}

/// Runs `pi auth print-api-key`.
///
/// # Errors
/// If there is no key, or an account is used in place of one.
pub(super) fn print_key(setup: &Setup, checked: &Checked) -> anyhow::Result<ExitCode> {
    let model = find(setup, checked).map_err(anyhow::Error::msg)?;
    match credential(setup, &model, true)?? {
        Credential::ApiKey(key) => modes::say(&key),
        Credential::None => anyhow::bail!("{} needs no key", model.provider),
        Credential::Bearer(_) | Credential::SignedIn(_) => {
            anyhow::bail!("{} is used with a token; print it with pi auth print-bearer-token", model.provider)
        }
        Credential::Aws(_) => anyhow::bail!("{} signs requests and sends no key", model.provider),
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `pi auth print-bearer-token`: a token that is valid for at least `min_expiry`, if it belongs to an
/// account.
///
/// # Errors
/// If there is no token, or it cannot be renewed.
pub(super) fn print_token(
    setup: &Setup,
    checked: &Checked,
    min_expiry: Duration,
) -> anyhow::Result<ExitCode> {
    let model = find(setup, checked).map_err(anyhow::Error::msg)?;
    let found = credential(setup, &model, true)??;
    let Some(token) = found.bearer() else {
        anyhow::bail!(
            "{} is not used with a token; print its key with pi auth print-api-key",
            model.provider
        );
    };
    let needed_until_ms =
        setup.clock.now_ms().saturating_add(u64::try_from(min_expiry.as_millis()).unwrap_or(u64::MAX));
    let ends_early = expires_ms(setup, &model.provider).is_some_and(|end_ms| end_ms < needed_until_ms);
    if !ends_early {
        modes::say(token);
        return Ok(ExitCode::SUCCESS);
    }
    let renewed = run(setup, setup.credentials.renew(&model, &setup.catalog, token))??;
    let Some(token) = renewed.bearer() else { anyhow::bail!("{} has no token any more", model.provider) };
    modes::say(token);
    if expires_ms(setup, &model.provider).is_some_and(|end_ms| end_ms < needed_until_ms) {
        modes::report_notes(&["the service gives no token that is valid for so long".to_owned()]);
    }
    Ok(ExitCode::SUCCESS)
}

/// A time such as `30m`: milliseconds `ms`, seconds `s`, minutes `m` or hours `h`.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let ms_each = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let ms =
        number.parse::<u64>().ok().filter(|_| ms_each > 0).and_then(|number| number.checked_mul(ms_each));
    ms.map(Duration::from_millis)
        .ok_or_else(|| "expected a time such as 30m; the units are ms, s, m and h".to_owned())
}

impl Checked {
    fn name(&self) -> &str {
        self.provider.as_deref().or(self.model.as_deref()).unwrap_or_default()
    }
}

/// A model of the provider that is checked.
fn find(setup: &Setup, checked: &Checked) -> Result<Arc<Model>, String> {
    let usable =
        |id: &str| setup.catalog.provider(id).is_some_and(|info| setup.credentials.is_available(info));
    if let Some(reference) = &checked.model {
        let matched = setup.catalog.find(reference, None, &usable);
        return matched.map(|matched| matched.model).map_err(|error| error.to_string());
    }
    let id = checked.name();
    let info = setup.catalog.provider(id);
    let info =
        info.ok_or_else(|| format!("there is no provider \"{id}\"; list providers with pi auth status"))?;
    let first = setup.catalog.models_of(id).first().cloned();
    first.or_else(|| info.template.clone()).ok_or_else(|| format!("pi knows no model of {id}"))
}

fn credential(
    setup: &Setup,
    model: &Model,
    may_renew: bool,
) -> anyhow::Result<Result<Credential, CredentialError>> {
    let has_expired = expires_ms(setup, &model.provider).is_some_and(|end_ms| end_ms <= setup.clock.now_ms());
    if !may_renew && has_expired {
        let reason = "its token has expired, and --no-refresh was given".to_owned();
        return Ok(Err(CredentialError::NotRenewed { provider: model.provider.clone(), reason }));
    }
    run(setup, setup.credentials.resolve(model, &setup.catalog))
}

/// Runs `asking`, and lets a token that is being renewed be saved.
fn run<T>(setup: &Setup, asking: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let answer = asking.await;
        setup.credentials.settled().await;
        answer
    });
    runtime.shutdown_background();
    Ok(answer)
}

/// When the token of a provider's account ends.
fn expires_ms(setup: &Setup, provider: &str) -> Option<u64> {
    let providers = setup.credentials.providers(&setup.catalog);
    providers.into_iter().find(|known| known.id == provider).and_then(|known| match known.source {
        KeySource::SignedIn { expires_ms } => Some(expires_ms),
        _ => None,
    })
}

fn kind(credential: &Credential) -> &'static str {
    match credential {
        Credential::None => "none",
        Credential::ApiKey(_) => "api_key",
        Credential::Bearer(_) => "bearer",
        Credential::SignedIn(_) => "oauth",
        Credential::Aws(_) => "aws",
    }
}

fn status_of(error: &CredentialError) -> Status {
    match error {
        CredentialError::Missing { .. }
        | CredentialError::OnlyDemo
        | CredentialError::NoDefault { .. }
        | CredentialError::NoAddress { .. } => Status::NotReady,
        CredentialError::Unresolved { .. }
        | CredentialError::Headers { .. }
        | CredentialError::Broken { .. }
        | CredentialError::SignedOut { .. }
        | CredentialError::NotRenewed { .. } => Status::Invalid(INVALID),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        let check = |text: &str, ms: Option<u64>| {
            assert_eq!(parse_time(text).ok(), ms.map(Duration::from_millis), "{text}");
        };
        check("30m", Some(1_800_000));
        check("0s", Some(0));
        check("250ms", Some(250));
        check("2h", Some(7_200_000));
        for wrong in ["", "30", "m", "1d", "-1m", "1.5h", "99999999999999999999h", "18446744073709551615h"] {
            check(wrong, None);
        }
    }
}
