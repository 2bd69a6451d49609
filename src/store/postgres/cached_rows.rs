//! Forms and keys, decoded once: a cached one is used if the database still has the same.

use std::collections::HashMap;
use std::sync::Arc;

use quick_cache::sync::Cache;

use super::Database;
use super::transaction::Tx;
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::workspace::ApiKey;
use crate::id::{FormId, FormRef};
use crate::secret::KeyId;
use crate::store::json::from_json;
use crate::store::{Result, StoreError};

/// Forms, and keys, that are kept decoded.
const CACHED: usize = 1_000;

/// A key with the JSON that it was decoded from.
type CachedKey = (Box<str>, Arc<ApiKey>);

pub(super) struct CachedRows {
    forms: Cache<FormId, Arc<Form>>,
    keys: Cache<KeyId, CachedKey>,
}

impl Default for CachedRows {
    fn default() -> Self {
        Self { forms: Cache::new(CACHED), keys: Cache::new(CACHED) }
    }
}

impl Database {
    pub(super) async fn read_forms(self, wanted: Vec<FormRef>) -> Result<Vec<Option<Arc<Form>>>> {
        let wanted = &wanted;
        self.read(|tx| async move { forms(&tx, wanted).await }).await
    }

    pub(super) async fn read_keys(self, ids: Vec<KeyId>) -> Result<Vec<Option<Arc<ApiKey>>>> {
        let ids = &ids;
        self.read(|tx| async move { keys(&tx, ids).await }).await
    }
}

/// Reads forms, in the trash or not, in the order of `forms`.
pub(super) async fn forms(tx: &Tx, forms: &[FormRef]) -> Result<Vec<Option<Arc<Form>>>> {
    let cache = &tx.context.cached.forms;
    let mut known = HashMap::new();
    for form in forms {
        known.insert(form.id, cache.get(&form.id));
    }
    let ids: Vec<FormId> = known.keys().copied().collect();
    let revision = |form: &Arc<Form>| i64::try_from(form.revision).unwrap_or(0);
    let revisions: Vec<Option<i64>> = known.values().map(|form| form.as_ref().map(revision)).collect();
    let deleted: Vec<Option<Timestamp>> = known.values().map(|form| form.as_ref()?.deleted_at).collect();
    let sql = "SELECT forms.id, CASE WHEN forms.revision = known.revision
                   AND forms.deleted_at IS NOT DISTINCT FROM known.deleted_at THEN NULL ELSE forms.data END
               FROM (SELECT unnest($1::BYTEA[]) AS id, unnest($2::BIGINT[]) AS revision,
                   unnest($3::BIGINT[]) AS deleted_at) known JOIN forms ON forms.id = known.id";
    let mut found = HashMap::new();
    for row in tx.query(sql, &[&ids, &revisions, &deleted]).await? {
        let id: FormId = row.get(0);
        let form = match row.get::<_, Option<&str>>(1) {
            Some(data) => {
                let form: Arc<Form> = Arc::new(from_json("a form", data.as_bytes())?);
                cache.insert(id, Arc::clone(&form));
                Some(form)
            }
            None => known.remove(&id).flatten(),
        };
        found.extend(form.map(|form| (id, form)));
    }
    let of_workspace = |form: &FormRef| found.get(&form.id).filter(|found| found.workspace == form.workspace);
    Ok(forms.iter().map(|form| of_workspace(form).cloned()).collect())
}

/// Reads a form, in the trash or not.
pub(super) async fn form(tx: &Tx, form: FormRef) -> Result<Option<Arc<Form>>> {
    Ok(forms(tx, &[form]).await?.pop().flatten())
}

/// Returns a form as it probably is: as it was when this process read it last, or as it is now.
pub(super) async fn expected_form(tx: &Tx, wanted: FormRef) -> Result<Option<Arc<Form>>> {
    match tx.context.cached.forms.get(&wanted.id) {
        Some(cached) => Ok(Some(cached)),
        None => form(tx, wanted).await,
    }
}

/// Reads keys in the order of `ids`.
pub(super) async fn keys(tx: &Tx, ids: &[KeyId]) -> Result<Vec<Option<Arc<ApiKey>>>> {
    let cache = &tx.context.cached.keys;
    let mut found = HashMap::new();
    for row in tx.query("SELECT id, data FROM api_keys WHERE id = ANY($1::TEXT[])", &[&ids]).await? {
        let (id, data): (&str, &str) = (row.get(0), row.get(1));
        let id = id.parse().map_err(|_text| StoreError::Undecodable("the id of an API key".to_owned()))?;
        let key = match cache.get(&id) {
            Some((cached, key)) if *cached == *data => key,
            _ => {
                let key: Arc<ApiKey> = Arc::new(from_json("an API key", data.as_bytes())?);
                cache.insert(id, (data.into(), Arc::clone(&key)));
                key
            }
        };
        found.insert(id, key);
    }
    Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
}
