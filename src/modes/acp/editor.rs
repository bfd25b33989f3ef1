//! Files of the client: its unsaved changes count, and it shows what tools write.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use agent_client_protocol_schema::v1::{
    ReadTextFileRequest, ReadTextFileResponse, SessionId, WriteTextFileRequest,
};

use crate::tools::Editor;

use super::client::Client;
use super::features::ClientFeatures;
use super::outgoing::Outgoing;

/// The client, as the tools of one session see it.
pub(super) struct ClientFiles {
    client: Arc<Client>,
    features: ClientFeatures,
    /// Known once the session is open.
    session: OnceLock<SessionId>,
}

impl ClientFiles {
    pub(super) fn new(client: Arc<Client>, features: ClientFeatures) -> Self {
        Self { client, features, session: OnceLock::new() }
    }

    pub(super) fn on_open(&self, session: &SessionId) {
        // A session keeps its id.
        drop(self.session.set(session.clone()));
    }
}

impl fmt::Debug for ClientFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientFiles").field(&self.session).finish()
    }
}

impl Editor for ClientFiles {
    /// An error of the client means that it does not have the file: most serve the files of
    /// their project only.
    fn read(&self, path: &Path) -> Option<String> {
        let session = self.session.get().filter(|_| self.features.reads_files)?;
        let params = ReadTextFileRequest::new(session.clone(), path);
        let reply = self.client.request("fs/read_text_file", &params).wait_blocking().ok()?;
        serde_json::from_value::<ReadTextFileResponse>(reply).ok().map(|response| response.content)
    }

    fn write(&self, path: &Path, text: &str) -> bool {
        let Some(session) = self.session.get().filter(|_| self.features.writes_files) else { return false };
        let params = WriteTextFileRequest::new(session.clone(), path, text);
        self.client.request("fs/write_text_file", &params).wait_blocking().is_ok()
    }

    fn on_overwrite(&self, path: &Path, text: &str) {
        if let Some(session) = self.session.get() {
            let (path, text) = (path.to_owned(), text.to_owned());
            self.client.send(Outgoing::Overwritten(session.clone(), path, text));
        }
    }
}
