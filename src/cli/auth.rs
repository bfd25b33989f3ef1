//! `pi auth`: keys and sign-ins from the shell.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser as _, Subcommand, ValueEnum};
use tokio::runtime::Builder;

use crate::config::{
    CLIENT_ID_HELP, Credentials, Dirs, Env, SignInMethod, SignInOffer, SignInRequest, sign_in_offer,
};
use crate::modes::{self, Terminals, UsageError};
use crate::util::paths;

use super::args::Args;
use super::auth_check::{self, Checked};
use super::reference::{Suggested, providers};
use super::start::Setup;

/// The arguments of `pi auth`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct AuthArgs {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum AuthCommand {
    /// Show where each key comes from (keys are never printed)
    Status {
        /// Only this provider
        #[arg(value_parser = Suggested(providers), hide_possible_values = true)]
        provider: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Save a key, typed or piped in, or sign in to an account
    Login {
        /// The provider, such as anthropic; pi auth status lists all
        #[arg(value_parser = Suggested(providers), hide_possible_values = true)]
        provider: String,
        /// How to log in [default: the provider's first method]
        #[arg(long, value_name = "HOW")]
        with: Option<How>,
        /// GitHub Enterprise server to sign in to, such as company.ghe.com
        #[arg(long, value_name = "HOST")]
        domain: Option<String>,
        /// The same as --with key
        #[arg(long, conflicts_with_all = ["with", "no_browser"])]
        api_key: bool,
        /// The same as --with device
        #[arg(long, conflicts_with = "with")]
        no_browser: bool,
    },
    /// Remove a saved key or sign-in
    Logout {
        /// The provider, such as anthropic; pi auth status lists all
        #[arg(value_parser = Suggested(providers), hide_possible_values = true)]
        provider: String,
    },
    /// Say whether a provider can be used: ready, not_ready or invalid (exit code 0, 1 or 2)
    Check {
        #[command(flatten)]
        checked: Checked,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Don't renew a token that has expired
        #[arg(long)]
        no_refresh: bool,
    },
    /// Print the key of a provider, for other programs
    PrintApiKey {
        #[command(flatten)]
        checked: Checked,
    },
    /// Print the token of an account, renewed if needed, for other programs
    PrintBearerToken {
        #[command(flatten)]
        checked: Checked,
        /// How long the token must be valid, such as 30m (units: ms, s, m, h)
        #[arg(long, value_name = "TIME", value_parser = auth_check::parse_time, default_value = "0s")]
        min_expiry: Duration,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    /// An API key
    Key,
    /// An account, through the browser
    Browser,
    /// An account, with a code entered in a browser on any device
    Device,
}

/// Runs the sub-command.
pub(super) fn run(args: AuthArgs, env: Env) -> anyhow::Result<ExitCode> {
    let setup = Setup::new(&Args::try_parse_from(["pi"]).context("no arguments")?, env)?;
    let credentials = &setup.credentials;
    let problem = credentials.file().and_then(|file| file.known().problem().map(str::to_owned));
    let problem = problem.map(|problem| paths::with_tilde(&problem, setup.dirs.home.as_deref()));
    let is_status = matches!(args.command, AuthCommand::Status { .. });
    // The status contains it.
    let is_left_out = |other: &String| is_status && Some(other) == problem.as_ref();
    let others: Vec<String> = setup.problems.iter().filter(|other| !is_left_out(other)).cloned().collect();
    modes::report_notes(&others);
    match args.command {
        AuthCommand::Status { provider, json } => {
            let mut providers = credentials.providers(&setup.catalog);
            if let Some(wanted) = provider {
                providers.retain(|provider| provider.id == wanted);
                if providers.is_empty() {
                    anyhow::bail!("there is no provider \"{wanted}\"; list providers with pi auth status");
                }
            }
            Ok(modes::auth_status(&providers, problem.as_deref(), setup.clock.now_ms(), json))
        }
        AuthCommand::Login { provider, with, domain, api_key, no_browser } => {
            let with = with.or(api_key.then_some(How::Key)).or(no_browser.then_some(How::Device));
            log_in_to(&setup, provider, with, domain)
        }
        AuthCommand::Logout { provider } => {
            let file = credentials.file().context("keys cannot be saved here")?;
            if file.remove(&provider)? {
                modes::say(&format!("Removed the credentials of {provider}."));
            } else {
                modes::report_notes(&[format!("no key or account is saved for {provider}")]);
            }
            Ok(ExitCode::SUCCESS)
        }
        AuthCommand::Check { checked, json, no_refresh } => {
            auth_check::check(&setup, &checked, !no_refresh, json)
        }
        AuthCommand::PrintApiKey { checked } => auth_check::print_key(&setup, &checked),
        AuthCommand::PrintBearerToken { checked, min_expiry } => {
            auth_check::print_token(&setup, &checked, min_expiry)
        }
    }
}

/// Asks on the terminal which provider is meant, and logs in to it.
pub(super) fn log_in(setup: &Setup) -> anyhow::Result<ExitCode> {
    if !Terminals::detect().can_interact() {
        anyhow::bail!("logging in needs a terminal; use pi auth login PROVIDER there");
    }
    let known = known_providers(setup);
    modes::say(&format!("Providers: {}", known.join(", ")));
    modes::say("Which one do you use?");
    let mut provider = String::new();
    std::io::stdin().read_line(&mut provider).context("cannot read the name of the provider")?;
    log_in_to(setup, provider.trim().to_owned(), None, None)
}

fn known_providers(setup: &Setup) -> Vec<String> {
    let providers = setup.credentials.providers(&setup.catalog);
    providers.into_iter().filter(|known| known.is_known).map(|known| known.id).collect()
}

fn log_in_to(
    setup: &Setup,
    provider: String,
    with: Option<How>,
    domain: Option<String>,
) -> anyhow::Result<ExitCode> {
    let known = known_providers(setup);
    if !known.contains(&provider) {
        anyhow::bail!("there is no provider \"{provider}\"; choose one of {}", known.join(", "));
    }
    match way(&provider, with)? {
        None => store_key(&setup.credentials, &setup.dirs, &provider),
        Some(method) => sign_in(&setup.credentials, provider, method, domain),
    }
}

/// How to log in; `None` means with a key.
fn way(provider: &str, with: Option<How>) -> anyhow::Result<Option<SignInMethod>> {
    let offer = sign_in_offer(provider);
    let takes_key = offer.is_none_or(SignInOffer::takes_key);
    let methods = offer.map_or(&[][..], |offer| offer.methods);
    let method = match with {
        None if takes_key => return Ok(None),
        None => methods.first().copied(),
        Some(How::Key) if takes_key => return Ok(None),
        Some(How::Key) => None,
        Some(How::Browser) => methods.iter().copied().find(|method| *method == SignInMethod::Browser),
        Some(How::Device) => methods.iter().copied().find(|method| *method == SignInMethod::DeviceCode),
    };
    let method =
        method.ok_or_else(|| UsageError(format!("{provider} does not support this way to log in")))?;
    Ok(Some(method))
}

fn store_key(credentials: &Credentials, dirs: &Dirs, provider: &str) -> anyhow::Result<ExitCode> {
    let file = credentials.file().context("keys cannot be saved here")?;
    // Report it before the user types a key.
    if let Some(problem) = file.known().problem() {
        anyhow::bail!("{problem}; fix the file and try again");
    }
    let key = modes::read_key(provider, Terminals::detect().stdin)?;
    if key.is_empty() {
        anyhow::bail!("no key entered; nothing was saved");
    }
    file.set_key(provider, key.expose())?;
    modes::say(&format!("Saved the key for {provider} in {}.", dirs.display(file.path())));
    Ok(ExitCode::SUCCESS)
}

fn sign_in(
    credentials: &Credentials,
    provider: String,
    method: SignInMethod,
    domain: Option<String>,
) -> anyhow::Result<ExitCode> {
    let accounts = credentials.accounts().context("accounts cannot be saved here")?;
    if sign_in_offer(&provider).is_some_and(|offer| accounts.asks_for_client_id(offer)) {
        anyhow::bail!("{provider} needs a client id. {}", CLIENT_ID_HELP.join(" "));
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let request = SignInRequest { provider, method, client_id: None, domain };
    let signed_in = runtime.block_on(modes::sign_in(accounts, request, Terminals::detect().stdin));
    // A thread may still wait for a line of the terminal.
    runtime.shutdown_background();
    signed_in.map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::super::args;
    use super::*;

    #[test]
    fn wrong_arguments_are_errors() {
        for wrong in [&[][..], &["login"], &["status", "--bogus"], &["login", "groq", "--with", "charm"]] {
            let words = [&["pi", "auth"], wrong].concat();
            assert!(args::parse(words.iter().map(Into::into).collect()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_key_is_the_usual_way_where_one_is_taken() {
        let check = |provider: &str, with: Option<How>, expected: Result<Option<SignInMethod>, ()>| {
            assert_eq!(way(provider, with).map_err(drop), expected, "{provider} {with:?}");
        };
        check("groq", None, Ok(None));
        check("groq", Some(How::Browser), Err(()));
        check("openai", None, Ok(None));
        check("openai", Some(How::Browser), Ok(Some(SignInMethod::Browser)));
        check("openai-codex", None, Ok(Some(SignInMethod::Browser)));
        check("openai-codex", Some(How::Device), Ok(Some(SignInMethod::DeviceCode)));
        check("github-copilot", None, Ok(Some(SignInMethod::DeviceCode)));
        check("github-copilot", Some(How::Key), Err(()));
        check("anthropic", Some(How::Browser), Err(()));
    }
}
