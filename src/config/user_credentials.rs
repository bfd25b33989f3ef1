//! The keys and accounts of a user, from all sources.

use std::sync::Arc;

use crate::ai::Transport;
use crate::util::clock::Clock;

use super::auth_file::AuthFile;
use super::aws::AwsCredentials;
use super::credentials::Credentials;
use super::dirs::Dirs;
use super::env::Env;
use super::google_adc::GoogleAdc;
use super::oauth::{Accounts, Endpoints};
use super::settings::Settings;

/// The credentials in `auth.json`, in the variables of `env`, and of this machine's cloud
/// accounts; and what is wrong with `auth.json`, one line each. Accounts renew their tokens through
/// `transport`.
pub fn user_credentials(
    env: &Env,
    dirs: &Dirs,
    settings: &Settings,
    transport: &Transport,
    clock: &Clock,
) -> (Credentials, Vec<String>) {
    let file = Arc::new(AuthFile::open(dirs.auth_file()));
    let known = file.known();
    let problems =
        known.problem().map(str::to_owned).into_iter().chain(known.repeated().iter().cloned()).collect();
    let client_id = env.get("PI_COPILOT_CLIENT_ID").or_else(|| settings.copilot_client_id.clone());
    let (home, endpoints) = (dirs.home.as_deref(), Endpoints::default());
    let accounts = Accounts::new(transport.clone(), clock.clone(), endpoints, Arc::clone(&file), client_id);
    let google = GoogleAdc::new(env, home, transport.clone(), clock.clone());
    let aws = AwsCredentials::new(env, home, transport.clone(), clock.clone());
    let credentials = Credentials::new(env.clone())
        .with_store(file, accounts)
        .with_list_cache(dirs.model_lists_file())
        .with_ambient("google-vertex", Arc::new(google))
        .with_ambient("amazon-bedrock", Arc::new(aws));
    (credentials, problems)
}
