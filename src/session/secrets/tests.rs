use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::*;

/// `n` characters that look random, of an alphabet that every kind accepts.
fn noise(n: usize) -> String {
    "q7Zk2Xw9Lm4Tb8Rv3Ns6".chars().cycle().take(n).collect()
}

fn hex(n: usize) -> String {
    "0f1e2d3c4b5a6978".chars().cycle().take(n).collect()
}

/// An example of each kind. Put together here, so that scanners of source code do not
/// take them for real.
fn examples() -> Vec<(&'static str, String)> {
    let line = noise(64);
    let pem = [
        "-----BEGIN RSA PRIVATE",
        " KEY-----\n",
        &line,
        "\n",
        &line,
        "\nab==\n-----END RSA PRIVATE",
        " KEY-----",
    ]
    .concat();
    let mut rows = vec![("private key", pem)];
    for (kind, prefix, rest) in [
        ("age secret key", "AGE-SECRET", "-KEY-1".to_owned() + &noise(50).to_uppercase()),
        ("Anthropic key", "sk-", "ant-api03-".to_owned() + &noise(40)),
        ("OpenRouter key", "sk-", "or-v1-".to_owned() + &noise(40)),
        ("OpenAI key", "sk-", "proj-".to_owned() + &noise(40)),
        ("OpenAI key", "sk-", noise(20) + "T3Blb" + "kFJ" + &noise(20)),
        ("API key", "sk-", noise(40)),
        ("Google API key", "AI", "za".to_owned() + &noise(35)),
        ("Google access token", "ya", "29.".to_owned() + &noise(40)),
        ("Google client secret", "GOC", "SPX-".to_owned() + &noise(28)),
        ("GitHub token", "gh", "p_".to_owned() + &noise(36)),
        ("GitHub token", "github", "_pat_".to_owned() + &noise(40)),
        ("GitLab token", "gl", "pat-".to_owned() + &noise(20)),
        ("AWS access key id", "AK", "IA".to_owned() + "QWERTYUI234567AB"),
        ("xAI key", "xa", "i-".to_owned() + &noise(60)),
        ("Groq key", "gs", "k_".to_owned() + &noise(50)),
        ("Perplexity key", "pp", "lx-".to_owned() + &noise(48)),
        ("Cerebras key", "cs", "k-".to_owned() + &hex(48)),
        ("Fireworks key", "fw", "_".to_owned() + &noise(24)),
        ("NVIDIA key", "nv", "api-".to_owned() + &noise(60)),
        ("Hugging Face token", "hf", "_".to_owned() + &noise(34)),
        ("Replicate token", "r8", "_".to_owned() + &noise(37)),
        ("Vercel key", "vc", "k_".to_owned() + &noise(50)),
        ("Slack token", "xo", "xb-".to_owned() + &noise(30)),
        ("Slack token", "xa", "pp-1-".to_owned() + &noise(30)),
        ("Slack webhook", "https://hooks.slack", ".com/services/T0AAA/B0BBB/".to_owned() + &noise(24)),
        ("Stripe key", "sk", "_live_".to_owned() + &noise(24)),
        ("SendGrid key", "SG", ".".to_owned() + &noise(22) + "." + &noise(43)),
        ("npm token", "np", "m_".to_owned() + &noise(36)),
        ("PyPI token", "pypi", "-AgE".to_owned() + &noise(60)),
        ("crates.io token", "ci", "o".to_owned() + &noise(32)),
        ("DigitalOcean token", "do", "p_v1_".to_owned() + &hex(64)),
        ("Telegram token", "12345678", ":AA".to_owned() + &noise(33)),
        ("signed token (JWT)", "ey", "J".to_owned() + &noise(20) + ".eyJ" + &noise(20) + "." + &noise(20)),
    ] {
        rows.push((kind, [prefix, &rest].concat()));
    }
    rows
}

/// Secrets known by what stands before them, with that.
fn with_surroundings() -> Vec<(&'static str, String, String)> {
    let row = |kind, before: &str, secret: String| (kind, before.to_owned(), secret);
    vec![
        row("AWS secret key", "aws_secret_access_key = ", noise(40)),
        row("Azure storage key", "AccountName=a;AccountKey=", noise(86) + "=="),
        row("authorization header", "Authorization: Bearer ", noise(30)),
        row("authorization header", "\"authorization\": \"Basic ", noise(30)),
        row("bearer token", "curl with bearer ", noise(30)),
        row("API key in a header", "x-api-key: ", noise(30)),
        row("password in a URL", "postgres://ada:", "hunter2".to_owned()),
        row("value of a secret variable", "export ACME_API_KEY=\"", noise(24)),
    ]
}

#[test]
fn every_kind_is_found_and_masked_and_nothing_of_it_stays() {
    let mut kinds_seen = std::collections::HashSet::new();
    for (kind, secret) in examples() {
        let text = format!("before {secret} after");
        let found = find_secrets(&text);
        assert_eq!(found.iter().map(|found| found.kind).collect::<Vec<_>>(), [kind], "{text}");
        assert_eq!(mask_secrets(&text), format!("before [masked: {kind}] after"));
        kinds_seen.insert(kind);
    }
    for (kind, before, secret) in with_surroundings() {
        let text = format!("{before}{secret}@host\" after");
        let found = find_secrets(&text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!((found[0].kind, &text[found[0].range.clone()]), (kind, &*secret), "{text}");
        kinds_seen.insert(kind);
    }
    for kind in KINDS {
        assert!(kinds_seen.contains(kind.name), "no example of {}", kind.name);
    }
}

#[test]
fn private_keys_are_found_escaped_numbered_and_truncated() {
    let (begin, end) =
        (["-----BEGIN PRIVATE", " KEY-----"].concat(), ["-----END PRIVATE", " KEY-----"].concat());
    let line = noise(64);
    for text in [
        format!("{begin}\\n{line}\\n{line}\\nab\\n{end}"),
        format!("    1\t{begin}\n    2\t{line}\n    3\tab=\n    4\t{end}"),
        format!("{begin}\n{line}\n{line}\nabc"),
        format!("{begin}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n{line}\n{end}"),
        format!("> {begin}\r\n> {line}\r\n> {end}"),
    ] {
        let masked = mask_secrets(&text);
        assert!(masked.contains("[masked: private key]"), "{text}: {masked}");
        assert!(!masked.contains(&line) && !masked.contains("END PRIVATE"), "{text}: {masked}");
    }
    assert_eq!(find_secrets(&format!("look for `{begin}` in the file")), []);
}

#[test]
fn prose_code_and_placeholders_are_not_reported() {
    for text in [
        "Authorization: Bearer <your-token-goes-here>",
        "Authorization: Bearer $ACME_API_KEY",
        "a bearer authentication-mechanism-of-some-kind",
        "ACME_API_KEY=your-api-key-goes-here",
        "ACME_API_KEY=${ANOTHER_VARIABLE}",
        "SECRET_KEY = os.environ[\"SECRET_KEY\"]",
        "https://example.com:8080/path@2x.png",
        "https://${USER}:${PASSWORD}@host/",
        "the skeleton sk-learn package; task-based; ask-me",
        "const TOKEN_LIMIT = 100000000000000000;",
        "x-api-key: xxxxxxxxxxxxxxxxxxxxxxxx",
        "commit 3f2a9c81d0e44b6f9a7c5d1e8b2f60a4c7d9e1b3",
    ] {
        assert_eq!(find_secrets(text), [], "{text}");
    }
}

#[test]
fn pictures_and_signatures_are_left_alone_and_names_are_not() {
    let key = ["gh", "p_", &noise(36)].concat();
    let mut value = json!({
        "image": { "type": "image", "data": key, "mimeType": "image/png" },
        "thinkingSignature": key,
        "arguments": { "nested": [{ "env": format!("TOKEN={key}") }], key.as_str(): 1 },
    });
    assert_eq!(secrets_in(&value), ["GitHub token", "GitHub token"]);
    assert_eq!(mask_secrets_in(&mut value), 2);
    let text = value["arguments"].to_string();
    assert!(!text.contains(&key), "{text}");
    assert_eq!(value["image"]["data"], key.as_str());
}

#[test]
fn a_masked_line_keeps_its_links_and_is_still_json() {
    let key = ["gh", "p_", &noise(36)].concat();
    let line = json!({"type": "message", "id": key, "parentId": null, "message": {"role": "user", "content": format!("use {key}")}});
    let masked: Value = serde_json::from_str(&mask_line(&line.to_string()).unwrap()).unwrap();
    assert_eq!(masked["id"], key.as_str());
    assert_eq!(masked["message"]["content"], "use [masked: GitHub token]");
    assert_eq!(mask_line(r#"{"type":"label","id":"a"}"#), None);
}

#[test]
fn report_counts_kinds_and_names_the_first_entries() {
    let mut report = SecretReport::default();
    for n in 0..7 {
        report.add(&EntryId::new(&format!("e{n}")), &["GitHub token", "GitHub token"]);
    }
    report.add(&EntryId::new("x"), &["private key"]);
    assert_eq!(report.n_secrets(), 15);
    assert_eq!(
        report.lines(),
        ["14 × GitHub token: entries e0, e1, e2, e3, e4 and 2 more", "1 × private key: entry x"]
    );
}

proptest! {
    #[test]
    fn secrets_anywhere_in_any_text_are_masked(
        parts in prop::collection::vec(("[ \n\"'(),;=:{}<>a-z]{0,12}", 0_usize..34), 0..6),
    ) {
        let examples = examples();
        let mut text = String::new();
        let mut secrets = Vec::new();
        for (between, at) in parts {
            let (_, secret) = &examples[at % examples.len()];
            text.push_str(&between);
            text.push(' ');
            text.push_str(secret);
            text.push(' ');
            secrets.push(secret.clone());
        }
        let masked = mask_secrets(&text);
        for secret in &secrets {
            prop_assert!(!masked.contains(secret.as_str()), "{masked}");
        }
    }

    #[test]
    fn any_text_is_survived_and_masked_text_has_no_secrets(text in any::<String>()) {
        let masked = mask_secrets(&text);
        prop_assert_eq!(find_secrets(&masked), vec![]);
    }
}

/// The pattern without the boundaries of words, which the generator of strings does not know.
fn without_boundaries(pattern: &str) -> String {
    pattern.replace(r"(?-u:\b)", "").replace(r"\b", "")
}

#[test]
fn every_secret_has_a_sign_by_which_short_texts_are_searched() {
    let mut runner = TestRunner::deterministic();
    for kind in KINDS {
        let strings = string_regex(&without_boundaries(&source(kind))).unwrap();
        for _ in 0..20 {
            let text = strings.new_tree(&mut runner).unwrap().current();
            assert!(may_have_secret(&text) || text.len() > MAX_SIGNED_BYTES, "{}: {text:?}", kind.name);
        }
    }
    assert!(!may_have_secret("Read the parser in src/main.rs, fix what fails, and run cargo test."));
}
