//! Loads the catalogue: the user's `models.json`, the models the original has
//! stored, and environment variables.

use std::io::{self, Read as _};
use std::path::Path;

use serde_json::Value;

use crate::ai::{Catalog, LocalAddresses};
use crate::util::{os, repeated_keys};

use super::dirs::Dirs;
use super::env::Env;

/// Maximum size of a model file.
const FILE_LIMIT_BYTES: u64 = 32 << 20;

/// The built-in models and those of `models-store.json` and `models.json`, which
/// may be missing; and problems with the files, one line each.
pub fn load_catalog(dirs: &Dirs, env: &Env) -> (Catalog, Vec<String>) {
    let mut catalog = Catalog::builtin();
    catalog.local_addresses = local_addresses(env);
    let mut problems = Vec::new();
    let path = dirs.models_store_file();
    let stored = match read(&path) {
        Ok(text) => catalog.add_stored_models(&text.unwrap_or_default()),
        Err(error) => Err(error.to_string()),
    };
    problems.extend(stored.err().map(|problem| format!("{}: {problem}", dirs.display(&path))));
    add_azure(&mut catalog, env);
    catalog.fill_addresses(|name| env.get(name).map(|value| value.trim().to_owned()));
    let path = dirs.models_file();
    match read(&path) {
        Ok(text) => {
            let text = text.unwrap_or_default();
            let wrong = catalog.add_user_models(&text).err().unwrap_or_default();
            problems.extend(wrong.into_iter().map(|problem| format!("{}: {problem}", dirs.display(&path))));
            let repeated = repeated_keys(text.trim_start_matches('\u{feff}'));
            problems
                .extend(repeated.iter().map(|key| format!("{}:{}: {key}", dirs.display(&path), key.line)));
        }
        Err(error) => problems.push(format!("{}: {error}", dirs.display(&path))),
    }
    (catalog, problems)
}

/// The text of a file, `None` if there is none.
fn read(path: &Path) -> io::Result<Option<String>> {
    let file = match os::open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_LIMIT_BYTES {
        let limit = FILE_LIMIT_BYTES >> 20;
        return Err(io::Error::other(format!("the file is larger than {limit} MiB")));
    }
    String::from_utf8(bytes).map(Some).map_err(io::Error::other)
}

/// `PI_LOCAL_SERVERS` lists `ID=URL` pairs to search instead of the default
/// addresses; `none` disables the search. Without it, Ollama's own variable applies.
fn local_addresses(env: &Env) -> LocalAddresses {
    match env.get("PI_LOCAL_SERVERS") {
        Some(list) => LocalAddresses::parse(&list),
        None => LocalAddresses::with_ollama(env.get("OLLAMA_HOST").as_deref()),
    }
}

/// Adds the address and deployments of the user's Azure resource:
/// `AZURE_OPENAI_BASE_URL` or `AZURE_OPENAI_RESOURCE_NAME`,
/// `AZURE_OPENAI_API_VERSION`, `AZURE_OPENAI_DEPLOYMENT_NAME_MAP` with
/// `MODEL=DEPLOYMENT` pairs.
fn add_azure(catalog: &mut Catalog, env: &Env) {
    let set =
        |name: &str| env.get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let resource = || {
        let name = set("AZURE_OPENAI_RESOURCE_NAME")?;
        Some(format!("https://{name}.openai.azure.com/openai/v1"))
    };
    let Some(mut base_url) = set("AZURE_OPENAI_BASE_URL").or_else(resource) else { return };
    if let Some(version) = set("AZURE_OPENAI_API_VERSION").filter(|_| !base_url.contains("api-version=")) {
        let mark = if base_url.contains('?') { '&' } else { '?' };
        base_url = format!("{base_url}{mark}api-version={version}");
    }
    let map = set("AZURE_OPENAI_DEPLOYMENT_NAME_MAP").unwrap_or_default();
    let deployments: Vec<(&str, &str)> = map
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(model, name)| (model.trim(), name.trim()))
        .collect();
    catalog.change_models("azure", |model| {
        model.base_url.clone_from(&base_url);
        if let Some((_, name)) = deployments.iter().find(|(id, _)| *id == model.id) {
            model.compat.insert("deployment".to_owned(), Value::from(*name));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_models_come_before_those_of_the_user() {
        let home = tempfile::tempdir().unwrap();
        let env = Env::of(&[("PI_CODING_AGENT_DIR", home.path().to_str().unwrap())]);
        let dirs = Dirs::new(&env);
        let models = serde_json::json!([{"id": "new", "api": "anthropic-messages", "contextWindow": 9, "maxTokens": 8}]);
        // The year 2100.
        let store =
            serde_json::json!({"anthropic": {"lastModified": 4_102_444_800_000_u64, "models": models}});
        std::fs::write(dirs.models_store_file(), store.to_string()).unwrap();
        let user = r#"{"providers":{"anthropic":{"modelOverrides":{"new":{"maxTokens":5}}}}}"#;
        std::fs::write(dirs.models_file(), user).unwrap();
        let (catalog, problems) = load_catalog(&dirs, &env);
        assert_eq!(problems, [""; 0]);
        let twice = user.replace(r#"{"maxTokens":5}"#, "{\"maxTokens\":4,\n\"maxTokens\":5}");
        std::fs::write(dirs.models_file(), twice).unwrap();
        let (_, problems) = load_catalog(&dirs, &env);
        let key = "providers.anthropic.modelOverrides.new.maxTokens";
        let expected =
            format!("models.json:2: \"{key}\" is in line 1 too; this value counts, the other is ignored");
        assert!(problems.len() == 1 && problems[0].ends_with(&expected), "{problems:?}");
        std::fs::write(dirs.models_file(), user).unwrap();
        let model = catalog.get("anthropic", "new").unwrap();
        assert_eq!((model.context_window, model.max_tokens), (9, 5));

        std::fs::write(dirs.models_store_file(), "{").unwrap();
        let (catalog, problems) = load_catalog(&dirs, &env);
        assert!(problems[0].contains("models-store.json: EOF") && problems.len() == 1, "{problems:?}");
        assert_eq!(catalog.models().count(), Catalog::builtin().models().count());

        std::fs::File::create(dirs.models_store_file()).unwrap().set_len(FILE_LIMIT_BYTES + 1).unwrap();
        let (_, problems) = load_catalog(&dirs, &env);
        assert!(problems[0].ends_with("the file is larger than 32 MiB"), "{problems:?}");
    }

    #[test]
    fn addresses_of_ones_own_are_filled_in() {
        let check = |pairs: &[(&str, &str)], expected: &str| {
            let env = Env::of(&[&[("PI_CODING_AGENT_DIR", "/nowhere")], pairs].concat());
            let (catalog, _) = load_catalog(&Dirs::new(&env), &env);
            let template = catalog.provider("cloudflare-ai-gateway").unwrap().template.clone().unwrap();
            assert_eq!(template.base_url, format!("https://gateway.ai.cloudflare.com/v1/{expected}/compat"));
        };
        check(&[], "{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}");
        let account = ("CLOUDFLARE_ACCOUNT_ID", "a1 ");
        check(&[account], "a1/{CLOUDFLARE_GATEWAY_ID}");
        check(&[account, ("CLOUDFLARE_GATEWAY_ID", "{CLOUDFLARE_ACCOUNT_ID}")], "a1/{CLOUDFLARE_ACCOUNT_ID}");
        check(&[account, ("CLOUDFLARE_GATEWAY_ID", "g")], "a1/g");
    }

    #[test]
    fn azures_variables_say_where_and_under_which_name() {
        let check = |pairs: &[(&str, &str)], base_url: &str, deployment: Option<&str>| {
            let nowhere = [("PI_CODING_AGENT_DIR", "/nowhere"), ("HOME", "/nowhere")];
            let env = Env::of(&[pairs, nowhere.as_slice()].concat());
            let (catalog, _) = load_catalog(&Dirs::new(&env), &env);
            let model = catalog.get("azure", "gpt-6.1-sol").unwrap();
            assert_eq!(model.base_url, base_url);
            assert_eq!(model.compat.get("deployment").and_then(Value::as_str), deployment);
        };
        check(&[], "", None);
        check(
            &[
                ("AZURE_OPENAI_RESOURCE_NAME", "mine"),
                ("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", "o3=a, gpt-6.1-sol = prod"),
            ],
            "https://mine.openai.azure.com/openai/v1",
            Some("prod"),
        );
        check(
            &[("AZURE_OPENAI_BASE_URL", "https://gate"), ("AZURE_OPENAI_API_VERSION", "2025-04-01")],
            "https://gate?api-version=2025-04-01",
            None,
        );
    }
}
