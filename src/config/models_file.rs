//! The catalogue with the user's `models.json`, and what variables say about it.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::ai::{Catalog, LocalAddresses};

use super::env::Env;

/// The built-in models and those of the file at `path`, which need not exist;
/// and what is wrong with it, one line each.
pub fn load_catalog(path: &Path, env: &Env) -> (Catalog, Vec<String>) {
    let mut catalog = Catalog::builtin();
    catalog.local_addresses = local_addresses(env);
    add_azure(&mut catalog, env);
    let problems = match fs::read_to_string(path) {
        Ok(text) => catalog.add_user_models(&text).err().unwrap_or_default(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => vec![error.to_string()],
    };
    let problems = problems.into_iter().map(|problem| format!("{}: {problem}", path.display())).collect();
    (catalog, problems)
}

/// `PI_LOCAL_SERVERS` lists `ID=URL` pairs to look at instead of the usual
/// addresses; `none` looks nowhere. Without it Ollama's own variable counts.
fn local_addresses(env: &Env) -> LocalAddresses {
    match env.get("PI_LOCAL_SERVERS") {
        Some(list) => LocalAddresses::parse(&list),
        None => LocalAddresses::with_ollama(env.get("OLLAMA_HOST").as_deref()),
    }
}

/// Where the user's resource at Azure is, and under which names its models were
/// deployed: `AZURE_OPENAI_BASE_URL` or `AZURE_OPENAI_RESOURCE_NAME`,
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
    fn azures_variables_say_where_and_under_which_name() {
        let check = |pairs: &[(&str, &str)], base_url: &str, deployment: Option<&str>| {
            let (catalog, _) = load_catalog(Path::new("/nowhere/models.json"), &Env::of(pairs));
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
