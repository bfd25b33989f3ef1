//! A disk that shows every step to an observer, and fails, panics or kills at one of them.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pi::session::{Disk, SystemDisk};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Steps from `step` on fail `n_times`.
    FailStep { step: u64, errno: i32, n_times: usize },
    /// Writes fail `n_times` behind the byte `at`, which counts over all files.
    FailByte { at: u64, errno: i32, n_times: usize },
    /// The thread that carries out a step panics.
    Panic { step: u64 },
    /// The process is killed: before a step, or after this many bytes of a write.
    Kill { step: u64, n_bytes: usize },
}

/// Errors of a full disk, and of a broken one.
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EIO: i32 = 5;

/// A lasting fault.
pub(crate) const ALWAYS: usize = usize::MAX;

/// Called before each step, with a description of it.
type Observer = Box<dyn FnMut(&str) + Send>;

/// The real disk, with faults.
pub(crate) struct TrialDisk(Mutex<State>);

struct State {
    n_steps: u64,
    n_bytes: u64,
    n_failed: usize,
    fault: Option<Fault>,
    observer: Option<Observer>,
    has_locks: bool,
}

impl fmt::Debug for TrialDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrialDisk")
    }
}

impl TrialDisk {
    pub(crate) fn new(fault: Option<Fault>) -> Arc<Self> {
        let state = State { n_steps: 0, n_bytes: 0, n_failed: 0, fault, observer: None, has_locks: true };
        Arc::new(Self(Mutex::new(state)))
    }

    /// A disk whose files cannot be locked, as on some network shares.
    pub(crate) fn without_locks() -> Arc<Self> {
        let disk = Self::new(None);
        disk.state().has_locks = false;
        disk
    }

    pub(crate) fn observe(&self, observer: impl FnMut(&str) + Send + 'static) {
        self.state().observer = Some(Box::new(observer));
    }

    pub(crate) fn stop_observing(&self) {
        self.state().observer = None;
    }

    /// Makes the disk whole again.
    pub(crate) fn mend(&self) {
        self.state().fault = None;
    }

    /// The number of steps so far, and of bytes written.
    pub(crate) fn count(&self) -> (u64, u64) {
        let state = self.state();
        (state.n_steps, state.n_bytes)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // A step that panics on purpose poisons nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a step; fails if it is the one that goes wrong.
    fn step(&self, what: &str) -> io::Result<()> {
        let mut state = self.state();
        let step = state.n_steps;
        state.n_steps += 1;
        if let Some(mut observer) = state.observer.take() {
            observer(what);
            state.observer = Some(observer);
        }
        match state.fault {
            Some(Fault::FailStep { step: from, errno, n_times }) if step >= from => {
                if state.n_failed < n_times {
                    state.n_failed += 1;
                    return Err(io::Error::from_raw_os_error(errno));
                }
                Ok(())
            }
            Some(Fault::Panic { step: at }) if step == at => {
                state.n_failed += 1;
                drop(state);
                panic!("the disk panics on purpose");
            }
            Some(Fault::Kill { step: at, n_bytes: 0 }) if step == at => die(),
            _ => Ok(()),
        }
    }
}

/// Kills this process, at once.
fn die() -> ! {
    kill(Pid::this(), Signal::SIGKILL).unwrap();
    loop {
        std::thread::park();
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Disk for TrialDisk {
    fn open(&self, options: &OpenOptions, path: &Path) -> io::Result<File> {
        self.step(&format!("open {}", name(path)))?;
        SystemDisk.open(options, path)
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        self.step(&format!("write {} bytes", bytes.len()))?;
        let mut state = self.state();
        let n_allowed = match state.fault {
            Some(Fault::FailByte { at, errno, n_times }) if state.n_failed < n_times => {
                let n_left = usize::try_from(at.saturating_sub(state.n_bytes)).unwrap();
                if n_left == 0 {
                    state.n_failed += 1;
                    return Err(io::Error::from_raw_os_error(errno));
                }
                n_left.min(bytes.len())
            }
            Some(Fault::Kill { step, n_bytes }) if state.n_steps == step + 1 => {
                let torn = &bytes[..n_bytes.min(bytes.len())];
                SystemDisk.write(file, torn)?;
                die();
            }
            _ => bytes.len(),
        };
        let n = SystemDisk.write(file, &bytes[..n_allowed])?;
        state.n_bytes += n as u64;
        Ok(n)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.step("sync")?;
        // Only a power failure tells the difference, and syncs take most of the time.
        drop(file.metadata());
        Ok(())
    }

    fn write_again(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.step("write again")?;
        SystemDisk.write_again(file, bytes, offset)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(&format!("rename to {}", name(to)))?;
        SystemDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(&format!("remove {}", name(path)))?;
        SystemDisk.remove(path)
    }

    fn try_lock(&self, file: &File) -> Result<(), TryLockError> {
        if !self.state().has_locks {
            // ENOLCK
            return Err(TryLockError::Error(io::Error::from_raw_os_error(37)));
        }
        SystemDisk.try_lock(file)
    }
}
