//! Text that pi put on this machine's clipboard.
//!
//! X11 keeps no copy: each program that pastes asks the owner for the text. So pi stays the owner
//! until it ends, and then hands the text to the desktop's clipboard manager, if one runs.

use std::sync::{Arc, Mutex, TryLockError};

/// A clipboard whose content may be lost when it is dropped.
pub(in super::super) trait Clipboard: Send + Sized + 'static {
    /// # Errors
    /// If this machine has none.
    fn open() -> Result<Self, String>;

    /// # Errors
    /// If the text was not accepted.
    fn set(&mut self, text: &str) -> Result<(), String>;
}

impl Clipboard for arboard::Clipboard {
    fn open() -> Result<Self, String> {
        Self::new().map_err(|error| error.to_string())
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.set_text(text).map_err(|error| error.to_string())
    }
}

/// The clipboard, open since something was copied. Clones share it.
#[derive(Debug)]
pub(in super::super) struct ClipboardOwner<C>(Arc<Mutex<Option<C>>>);

impl<C> Default for ClipboardOwner<C> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<C> Clone for ClipboardOwner<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C: Clipboard> ClipboardOwner<C> {
    /// Copies text. Blocks.
    ///
    /// # Errors
    /// If there is no clipboard, or it fails; the next call opens it again. If an earlier copy
    /// still waits for the clipboard.
    pub(super) fn copy(&self, text: &str) -> Result<(), String> {
        let mut kept = match self.0.try_lock() {
            Ok(kept) => kept,
            Err(TryLockError::Poisoned(kept)) => kept.into_inner(),
            Err(TryLockError::WouldBlock) => return Err("the clipboard does not respond".to_owned()),
        };
        let mut clipboard = match kept.take() {
            Some(clipboard) => clipboard,
            None => C::open()?,
        };
        clipboard.set(text)?;
        *kept = Some(clipboard);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    fn log(line: &str) {
        LOG.with_borrow_mut(|log| log.push(line.to_owned()));
    }

    struct Fake;

    impl Clipboard for Fake {
        fn open() -> Result<Self, String> {
            log("open");
            Ok(Self)
        }

        fn set(&mut self, text: &str) -> Result<(), String> {
            log(text);
            if text == "broken" { Err("no connection".to_owned()) } else { Ok(()) }
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            log("drop");
        }
    }

    #[test]
    fn a_clipboard_that_does_not_respond_is_not_waited_for() {
        let owner: ClipboardOwner<Fake> = ClipboardOwner::default();
        let held = owner.0.lock().unwrap();
        assert_eq!(owner.copy("a"), Err("the clipboard does not respond".to_owned()));
        drop(held);
        assert_eq!(owner.copy("b"), Ok(()));
    }

    #[test]
    fn copied_text_has_an_owner_until_pi_ends() {
        let owner: ClipboardOwner<Fake> = ClipboardOwner::default();
        owner.clone().copy("a").unwrap();
        owner.clone().copy("b").unwrap();
        assert_eq!(owner.copy("broken"), Err("no connection".to_owned()));
        owner.clone().copy("c").unwrap();
        log("end");
        drop(owner);
        let expected = ["open", "a", "b", "broken", "drop", "open", "c", "end", "drop"];
        assert_eq!(LOG.take(), expected);
    }
}
