//! Slugs in the embedded store: a row for each that a form outside the trash has, so that no two can.

use super::engine::tx::Tx;
use super::layout;
use crate::domain::form::Form;
use crate::domain::form::admission::Refusal;
use crate::store::StoreError;

/// Gives `form` its slug, if it has one. Refused, and nothing done, if it is another's.
pub(super) fn claim(tx: &mut Tx<'_>, form: &Form) -> Result<Result<(), Refusal>, StoreError> {
    let Some(slug) = &form.slug else { return Ok(Ok(())) };
    let key = layout::slug(form.workspace, slug);
    if let Some(holder) = tx.get(&key)? {
        return Ok(Err(Refusal::slug_taken(slug, layout::listed_form(&holder)?)));
    }
    tx.put(key, form.id.to_bytes().to_vec());
    Ok(Ok(()))
}

/// Frees the slug of `form`, if it has one.
pub(super) fn release(tx: &mut Tx<'_>, form: &Form) {
    if let Some(slug) = &form.slug {
        tx.delete(layout::slug(form.workspace, slug));
    }
}

/// Puts the slug of `new` in the place of that of `old`.
pub(super) fn replace(tx: &mut Tx<'_>, old: &Form, new: &Form) -> Result<Result<(), Refusal>, StoreError> {
    if old.slug == new.slug {
        return Ok(Ok(()));
    }
    let given = claim(tx, new)?;
    if given.is_ok() {
        release(tx, old);
    }
    Ok(given)
}
