//! Panics that were caught, as text.

use std::any::Any;

/// A panic's message, for the user.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// What a client reads in place of the result that a panic took.
pub fn crash_text(panic: &(dyn Any + Send)) -> String {
    format!("internal error in pi: {}; please report it", panic_text(panic))
}

/// Keeps other tests from changing the panic hook, which is global, or depending on it.
#[cfg(test)]
pub fn lock_hook() -> std::sync::MutexGuard<'static, ()> {
    static HOOK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    HOOK.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
