//! A server with a certificate of an authority that no system trusts.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};

/// The certificate of the authority that vouches for 127.0.0.1.
pub(crate) const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tls/authority.pem");

/// One reply to the first client that trusts the authority.
pub(crate) struct TlsServer {
    url: String,
    serving: JoinHandle<()>,
}

impl TlsServer {
    pub(crate) fn start(reply: String) -> Self {
        let config = Arc::new(server_config());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let serving = thread::spawn(move || {
            loop {
                let (socket, _) = listener.accept().unwrap();
                if serve(socket, &config, &reply).is_ok() {
                    return;
                }
            }
        });
        Self { url, serving }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns when the reply has been sent.
    pub(crate) fn join(self) {
        self.serving.join().unwrap();
    }
}

/// With the certificate that the authority vouches for.
pub(crate) fn server_config() -> ServerConfig {
    let certificate =
        CertificateDer::from_pem_slice(include_bytes!("../../fixtures/tls/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../../fixtures/tls/server-key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap()
}

fn serve(mut socket: TcpStream, config: &Arc<ServerConfig>, reply: &str) -> std::io::Result<()> {
    let mut connection = ServerConnection::new(Arc::clone(config)).unwrap();
    let mut stream = Stream::new(&mut connection, &mut socket);
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&request).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body)?;
    let kind = if reply.starts_with("data:") { "text/event-stream" } else { "application/json" };
    let length = reply.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all((head + reply).as_bytes())?;
    stream.flush()
}
