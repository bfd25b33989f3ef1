//! Receives the browser's answer: on a port of this machine, or as an
//! address that the user pastes.
//!
//! Any program on this machine can connect to the port, and any web page can send the
//! browser there. Answers without the `state` of this sign-in are therefore ignored,
//! and the reply page repeats nothing from the request.

use std::io;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::reply::plain;
use super::{SignInError, SignInPrompt, SignInStep};

/// The path that browsers return to.
pub(super) const PATH: &str = "/auth/callback";
/// Time limit for the user.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Time limit for a browser's request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_LIMIT_BYTES: usize = 16 << 10;
/// Wait after a connection that could not be accepted, possibly for lack of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The parameters a service sends with the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: String,
    /// From services that register a client with the sign-in.
    pub(super) client_id: Option<String>,
}

/// The required parameters of a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Code,
    /// Also the client id of a first sign-in, which only addresses contain.
    CodeAndClient,
}

/// Opens the port; `None` if another program uses it, so that the user must
/// paste the address.
pub(super) async fn listen(port: u16) -> Option<(TcpListener, u16)> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.ok()?;
    let port = listener.local_addr().ok()?.port();
    Some((listener, port))
}

/// Waits for the browser or the user and returns the first answer.
///
/// # Errors
/// If the user declines, the service rejects the sign-in, or the wait times out.
pub(super) async fn answer(
    listener: Option<TcpListener>,
    state: &str,
    needs: Needs,
    prompt: &mut SignInPrompt,
) -> Result<Answer, SignInError> {
    let steps = prompt.steps.clone();
    let browser = async {
        match listener {
            Some(listener) => serve(|| async { Ok(listener.accept().await?.0) }, state).await,
            None => std::future::pending().await,
        }
    };
    let pasting = async {
        loop {
            match pasted(prompt.next_paste().await.expose(), state, needs) {
                Ok(answer) => return answer,
                Err(problem) => drop(steps.send(SignInStep::Problem(problem.to_owned()))),
            }
        }
    };
    tokio::select! {
        answer = browser => answer,
        answer = pasting => answer,
        () = tokio::time::sleep(PATIENCE) => Err(SignInError::Expired),
    }
}

/// Serves browsers until one sends the answer; `accept` waits for the
/// next one. Connections end with this future.
async fn serve<F>(accept: impl Fn() -> F, state: &str) -> Result<Answer, SignInError>
where
    F: Future<Output = io::Result<TcpStream>>,
{
    let mut connections = JoinSet::new();
    loop {
        // Browsers open unused connections, which must not delay others.
        tokio::select! {
            accepted = accept() => match accepted {
                Ok(socket) => {
                    let state = state.to_owned();
                    connections.spawn(async move { timeout(REQUEST_TIMEOUT, visit(socket, &state)).await });
                }
                // Accepting may work later, and the user can still paste the address.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(visited) = connections.join_next() => {
                if let Ok(Ok(Some(answer))) = visited {
                    return answer;
                }
            }
        }
    }
}

/// Handles one request and sends its page.
async fn visit(mut socket: TcpStream, state: &str) -> Option<Result<Answer, SignInError>> {
    let target = request_target(&mut socket).await?;
    let (status, text, answer) = match callback(&target, state) {
        Some(Ok(answer)) => ("200 OK", "You are signed in. You can close this page.", Some(Ok(answer))),
        Some(Err(error)) => ("200 OK", "You are not signed in. You can close this page.", Some(Err(error))),
        None => ("400 Bad Request", "This is not the response pi is waiting for.", None),
    };
    let body = format!("<!doctype html><meta charset=utf-8><title>pi</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The browser may be gone; its answer still counts.
    drop(socket.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await);
    drop(socket.shutdown().await);
    answer
}

/// The target after `GET`.
async fn request_target(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        if bytes.len() > REQUEST_LIMIT_BYTES || socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&bytes);
    let target = head.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
    Some(target.to_owned())
}

/// The answer in the target of a request; `None` if it belongs to another program.
fn callback(target: &str, state: &str) -> Option<Result<Answer, SignInError>> {
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    if url.path() != PATH {
        return None;
    }
    answer_of(&url, state)
}

/// The answer in an address; `None` if it does not belong to this sign-in.
fn answer_of(url: &Url, state: &str) -> Option<Result<Answer, SignInError>> {
    let value = |wanted: &str| {
        let mut found = url.query_pairs().filter(|(name, _)| name == wanted);
        found.next().map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty())
    };
    if value("state").as_deref() != Some(state) {
        return None;
    }
    if let Some(error) = value("error") {
        return Some(Err(match error.as_str() {
            "access_denied" => SignInError::Denied,
            _ => SignInError::Refused { reason: plain(&value("error_description").unwrap_or(error)) },
        }));
    }
    let code = value("code").ok_or(SignInError::Protocol { what: "no code" });
    Some(code.map(|code| Answer { code, client_id: value("client_id") }))
}

/// Parses the user's paste: the address the browser ended at, or `code#state`.
///
/// # Errors
/// Describes what to paste instead.
fn pasted(text: &str, state: &str, needs: Needs) -> Result<Result<Answer, SignInError>, &'static str> {
    let text = text.trim();
    if let Ok(url) = text.parse::<Url>()
        && url.has_host()
    {
        return answer_of(&url, state)
            .ok_or("this address belongs to another sign-in; paste the one the browser ended at");
    }
    match text.split_once('#') {
        Some((code, given)) if given == state && !code.is_empty() => match needs {
            Needs::Code => Ok(Ok(Answer { code: code.to_owned(), client_id: None })),
            Needs::CodeAndClient => {
                Err("the first sign-in needs the whole address; paste the one the browser ended at")
            }
        },
        Some(_) => Err("this code belongs to another sign-in; paste the address the browser ended at"),
        None => Err("paste the whole address the browser ended at"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(answer: Option<Result<Answer, SignInError>>) -> String {
        match answer {
            None => "not ours".to_owned(),
            Some(Ok(answer)) => format!("{} {:?}", answer.code, answer.client_id),
            Some(Err(error)) => error.to_string(),
        }
    }

    #[test]
    fn only_an_answer_to_this_sign_in_counts() {
        let check =
            |target: &str, expected: &str| assert_eq!(shown(callback(target, "s1")), expected, "{target}");
        check("/auth/callback?code=c&state=s1", "c None");
        check("/auth/callback?code=a%2Bb&state=s1&client_id=app", "a+b Some(\"app\")");
        check("/auth/callback?code=c&state=s2", "not ours");
        check("/auth/callback?code=c", "not ours");
        check("/auth/callback?state=s2&code=c&state=s1", "not ours");
        check("/favicon.ico?code=c&state=s1", "not ours");
        check("//evil.example/?code=c&state=s1", "not ours");
        check("/auth/callback?state=s1", "the provider sent an unexpected response: no code");
        check("/auth/callback?state=s1&error=access_denied", "the sign-in was declined");
        check("/auth/callback?state=s1&error=x&error_description=n%1bo", "the provider rejected it: no");
        check("\\", "not ours");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_cannot_be_accepted_is_not_the_end() {
        let (listener, port) = listen(0).await.unwrap();
        let left = std::cell::Cell::new(3);
        let accept = || async {
            if left.replace(left.get() - 1) > 0 {
                return Err(io::Error::from(io::ErrorKind::ConnectionAborted));
            }
            Ok(listener.accept().await?.0)
        };
        let browser = async {
            let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let request = "GET /auth/callback?code=c&state=s1 HTTP/1.1\r\n\r\n";
            socket.write_all(request.as_bytes()).await.unwrap();
            socket
        };
        let (answer, _socket) = tokio::join!(serve(accept, "s1"), browser);
        assert_eq!(answer.unwrap().code, "c");
    }

    #[test]
    fn addresses_and_codes_can_be_pasted() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let answer = pasted(text, "s1", Needs::Code).map(|answer| shown(Some(answer)));
            assert_eq!(answer.as_deref().map_err(|problem| *problem), expected, "{text}");
        };
        check(" http://localhost:1455/auth/callback?code=c&state=s1 ", Ok("c None"));
        check("c#s1", Ok("c None"));
        check("c#s2", Err("this code belongs to another sign-in; paste the address the browser ended at"));
        check("c", Err("paste the whole address the browser ended at"));
        check(
            "http://localhost:1455/auth/callback?code=c&state=s2",
            Err("this address belongs to another sign-in; paste the one the browser ended at"),
        );
        assert!(pasted("c#s1", "s1", Needs::CodeAndClient).is_err());
        let address = "http://localhost:1455/auth/callback?code=c&state=s1&client_id=app";
        assert!(pasted(address, "s1", Needs::CodeAndClient).is_ok());
    }
}
