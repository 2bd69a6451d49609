//! What is to be done now and then, whoever asks for what.

use super::App;
use crate::domain::trash::horizon;
use crate::store::StoreError;

impl App {
    /// Erases the forms and the submissions that have lain in the trash for more than `days`: how many.
    pub async fn empty_trash(&self, days: u32) -> Result<usize, StoreError> {
        self.store.empty_trash(horizon(self.now(), days)).await
    }
}
