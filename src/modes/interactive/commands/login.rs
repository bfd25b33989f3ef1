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

fn list(_: &mut App, purpose: Purpose, args: &str, out: &mut Vec<Effect>) {
    let wanted = (!args.is_empty()).then(|| args.to_owned());
    out.push(LoginEffect::List { purpose, wanted }.into());
}
