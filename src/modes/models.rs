//! The list of models.

use std::process::ExitCode;

use crate::ai::{Catalog, Model};
use crate::config::Credentials;

use super::output::{write_err, write_out};
use super::table::table;

/// Prints the models whose reference or name contains `search`, as a table.
/// Models with a key come first.
pub fn list_models(
    catalog: &Catalog,
    credentials: &Credentials,
    search: Option<&str>,
    problems: &[String],
) -> ExitCode {
    for problem in problems {
        write_err(&format!("pi: {problem}"));
    }
    let needle = search.unwrap_or_default().to_lowercase();
    let has_key = |model: &Model| {
        catalog.provider(&model.provider).is_some_and(|provider| credentials.is_available(provider))
    };
    let mut models: Vec<&Model> = catalog
        .models()
        .map(|model| &**model)
        .filter(|model| {
            model.reference().to_lowercase().contains(&needle) || model.name.to_lowercase().contains(&needle)
        })
        .collect();
    if models.is_empty() {
        write_err(&format!("pi: no model contains \"{needle}\""));
        return ExitCode::from(1);
    }
    models.sort_by_key(|model| !has_key(model));
    let rows = models.iter().map(|model| {
        vec![
            model.reference(),
            thousands(model.context_window),
            thousands(model.max_tokens),
            yes_no(model.reasoning),
            yes_no(model.reads_images()),
            yes_no(has_key(model)),
        ]
    });
    let header = ["model", "context", "max out", "thinking", "images", "key"].map(str::to_owned);
    let rows: Vec<Vec<String>> = std::iter::once(header.to_vec()).chain(rows).collect();
    write_out(&table(&rows));
    ExitCode::SUCCESS
}

fn thousands(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{:.1}M", tokens as f64 / 1e6).replace(".0M", "M"),
    }
}

fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts_are_short() {
        let shown = [900, 8_192, 200_000, 1_000_000, 1_048_576, 2_500_000].map(thousands);
        assert_eq!(shown, ["900", "8k", "200k", "1M", "1M", "2.5M"]);
    }
}
