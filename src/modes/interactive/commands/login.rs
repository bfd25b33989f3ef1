//! Commands about keys and accounts.

use super::super::app::App;
use super::super::login::{LoginEffect, Purpose};
use super::super::msg::Effect;
use super::Command;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "login",
        args: "[PROVIDER]",
        help: "Save a provider's API key or sign in",
        run: |app, args, out| list(app, Purpose::Login, args, out),
    },
    Command {
        name: "logout",
        args: "[PROVIDER]",
        help: "Remove a saved key or sign-in",
        run: |app, args, out| list(app, Purpose::Logout, args, out),
    },
];

fn list(app: &mut App, purpose: Purpose, args: &str, out: &mut Vec<Effect>) {
    if args.contains(char::is_whitespace) {
        // The text may be a key, so it is neither repeated nor left in the editor.
        app.running_command = None;
        return app.fail("enter only the provider's name; pi asks for the key next");
    }
    let wanted = (!args.is_empty()).then(|| args.to_owned());
    out.push(LoginEffect::List { purpose, wanted }.into());
}
