//! Ends commands when the program is killed.
//!
//! SIGKILL leaves no time to clean up, and commands have sessions of their
//! own, so the terminal does not end them either. A shell process, started with the first
//! command, therefore reads the list of running commands from a pipe. The pipe closes
//! when the program ends for any reason, and the shell kills the commands still on its
//! list. A shell works in any process that uses this library, and needs
//! no second copy of the program.

use std::fmt;
use std::io;

/// A process to kill when the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Member {
    /// The process group, and the session if there is one, with this leader.
    Group(u32),
    /// The process whose standard output is the pipe with this inode number, and
    /// its group: a command whose process id is not known yet.
    Output(u64),
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(leader) => write!(f, "{leader}"),
            Self::Output(inode) => write!(f, "pipe-{inode}"),
        }
    }
}

/// What happened to a [`Member`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Added(Member),
    Removed(Member),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(member) => writeln!(f, "+ {member}"),
            Self::Removed(member) => writeln!(f, "- {member}"),
        }
    }
}

#[cfg(not(unix))]
pub(super) use none::Watchdog;
#[cfg(unix)]
pub(super) use unix::Watchdog;

/// Commands of a killed pi go on.
#[cfg(not(unix))]
mod none {
    use super::{Change, io};

    #[derive(Debug)]
    pub(in super::super) struct Watchdog(());

    impl Watchdog {
        /// # Errors
        /// Always: there is none.
        pub(in super::super) fn start() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// # Errors
        /// None.
        pub(in super::super) fn note(&mut self, _change: Change) -> io::Result<()> {
            Ok(())
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::process::{Child, Stdio};

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    use super::super::os::detached;
    use super::{Change, io};

    /// Written for any POSIX shell. The first loop keeps the list; the rest runs once
    /// the pipe is closed, when every process that was being started has become its
    /// command. What moved to another group, as `timeout` and `set -m` do, is found by
    /// its session; what founded a session of its own detached itself on purpose. Where
    /// there is no `/proc`, what the leaders started and what that started is killed instead.
    pub(super) const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM TSTP TTIN TTOU
proc=/proc
live=' '
while read -r sign member; do
  case $sign in
    +) live="$live$member " ;;
    -)
      before=${live%%" $member "*}
      after=${live#*" $member "}
      [ "$before" = "$live" ] || live="$before $after" ;;
  esac
done
if [ ! -d $proc/self ]; then
  tree=$(ps -A -o pid= -o ppid=)
  found=' ' more=1
  for member in $live; do found="$found$member "; done
  while [ $more = 1 ]; do
    more=0
    while read -r pid parent; do
      case $found in *" $pid "*) continue ;; *" $parent "*) found="$found$pid " more=1 ;; esac
    done <<END
$tree
END
  done
  for pid in $found; do kill -9 "-$pid"; kill -9 "$pid"; done
  exit
fi
leaders=' '
end() { kill -9 "-$1" || kill -9 "$1"; leaders="$leaders$1 "; }
for member in $live; do
  case $member in
    pipe-*)
      for output in $proc/[0-9]*/fd/1; do
        [ "$(readlink "$output")" = "pipe:[${member#pipe-}]" ] || continue
        output=${output#$proc/}
        end "${output%%/*}"
      done ;;
    *) end "$member" ;;
  esac
done
[ "$leaders" = ' ' ] && exit
killed=' ' more=1 round=0
while [ $more = 1 ] && [ $round -lt 16 ]; do
  more=0 round=$((round + 1))
  for stat in $proc/[0-9]*/stat; do
    read -r line < "$stat" || continue
    pid=${line%% *}
    set -- ${line##*") "}
    [ "$1" = Z ] && continue
    case $leaders in *" $4 "*) ;; *) continue ;; esac
    case $killed in *" $pid "*) continue ;; esac
    kill -9 "$pid"
    killed="$killed$pid " more=1
  done
done
"#;

    /// The running shell. Dropping it ends it without killing commands.
    #[derive(Debug)]
    pub(in super::super) struct Watchdog {
        shell: Child,
        /// Closed by the end of the program; non-blocking, so that a stopped shell
        /// does not block the program.
        list: File,
    }

    impl Watchdog {
        /// Starts it with an empty list, in a session of its own.
        pub(in super::super) fn start() -> io::Result<Self> {
            Self::start_with(SCRIPT)
        }

        pub(super) fn start_with(script: &str) -> io::Result<Self> {
            let (reader, writer) = io::pipe()?;
            let writer = OwnedFd::from(writer);
            fcntl_setfl(&writer, fcntl_getfl(&writer)? | OFlags::NONBLOCK)?;
            let args = ["-c".into(), script.into()];
            let shell = detached(Path::new("/bin/sh"), &args)?
                .stdin(reader)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                // The caller's environment must not slow it down, and it must not keep a folder in use.
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .current_dir("/")
                .spawn()?;
            Ok(Self { shell, list: File::from(writer) })
        }

        /// # Errors
        /// If the shell is gone or no longer reads.
        pub(in super::super) fn note(&mut self, change: Change) -> io::Result<()> {
            // Short enough to be written to a pipe atomically.
            self.list.write_all(change.to_string().as_bytes())
        }

        /// Closes the list as the end of the program does, and waits for the result.
        #[cfg(test)]
        pub(in super::super) fn close(mut self) {
            let null = File::open("/dev/null").unwrap();
            drop(std::mem::replace(&mut self.list, null));
            self.shell.wait().unwrap();
        }
    }

    impl Drop for Watchdog {
        fn drop(&mut self) {
            // An error means that it has ended already.
            self.shell.kill().unwrap_or_default();
            self.shell.wait().map(drop).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    #[cfg(target_os = "linux")]
    use std::os::fd::AsFd;
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell script that leads a group, once it has printed its first line.
    fn leader(script: &str) -> (Child, String) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        // `set -m` remarks that there is no terminal.
        command.stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        (child, line.trim().to_owned())
    }

    /// The output of a child that somebody else kills.
    fn watched(mut child: Child) -> std::process::ChildStdout {
        let output = child.stdout.take().unwrap();
        std::thread::spawn(move || child.wait());
        output
    }

    #[cfg(target_os = "linux")]
    fn inode(pipe: impl AsFd) -> u64 {
        rustix::fs::fstat(pipe).unwrap().st_ino
    }

    fn is_killed(mut child: Child) -> bool {
        child.wait().unwrap().signal() == Some(9)
    }

    #[test]
    fn what_is_listed_when_the_pipe_closes_is_killed_and_nothing_else() {
        let (running, _) = leader("echo; sleep 1000 & wait");
        let (mut ended, _) = leader("echo; exec sleep 1000");
        let (mut other, _) = leader("echo; exec sleep 1000");
        let mut watchdog = Watchdog::start().unwrap();
        let [first, second] = [running.id(), ended.id()].map(Member::Group);
        for change in [Change::Added(second), Change::Added(first), Change::Removed(second)] {
            watchdog.note(change).unwrap();
        }
        watchdog.close();
        assert!(is_killed(running));
        for child in [&mut ended, &mut other] {
            assert!(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn without_proc_what_the_listed_started_is_killed_whatever_its_group() {
        let (running, group) = leader("set -m; sleep 1000 & echo $!; wait");
        let (mut other, _) = leader("echo; exec sleep 1000");
        let script = unix::SCRIPT.replacen("proc=/proc", "proc=/nonexistent", 1);
        let mut watchdog = Watchdog::start_with(&script).unwrap();
        watchdog.note(Change::Added(Member::Group(running.id()))).unwrap();
        // Its standard output is a pipe to here, which closes when the last of them ends.
        let mut output = watched(running);
        watchdog.close();
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut output, &mut rest).unwrap();
        assert!(group.parse::<u32>().is_ok());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_command_whose_id_is_not_known_yet_is_found_by_its_output() {
        let (running, _) = leader("echo; sleep 1000 & wait");
        let mut watchdog = Watchdog::start().unwrap();
        let output = Member::Output(inode(running.stdout.as_ref().unwrap()));
        watchdog.note(Change::Added(output)).unwrap();
        watchdog.close();
        assert!(is_killed(running));
    }

    #[test]
    fn a_dismissed_watchdog_kills_nothing() {
        let (mut running, _) = leader("echo; exec sleep 1000");
        let mut watchdog = Watchdog::start().unwrap();
        watchdog.note(Change::Added(Member::Group(running.id()))).unwrap();
        drop(watchdog);
        assert!(running.try_wait().unwrap().is_none());
        running.kill().unwrap();
        running.wait().unwrap();
    }
}
