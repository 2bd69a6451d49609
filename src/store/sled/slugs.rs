//! Slugs in the embedded store: one row for each slug of a form outside the trash, which keeps slugs unique.

use super::engine::tx::Tx;
use super::layout;
use crate::domain::form::Form;
use crate::domain::form::admission::Refusal;
use crate::store::Result;

/// Reserves the slug of `form`, if it has one. Refused, with no effect, if another form has it.
pub(super) fn claim(tx: &mut Tx<'_>, form: &Form) -> Result<Result<(), Refusal>> {
    let Some(slug) = &form.slug else { return Ok(Ok(())) };
    let key = layout::slug(form.workspace, slug);
    if let Some(holder) = tx.get(&key)? {
        return Ok(Err(Refusal::slug_taken(slug, layout::listed_form(&holder)?)));
    }
    tx.put(key, form.id.to_bytes().to_vec());
    Ok(Ok(()))
}

/// Releases the slug of `form`, if it has one.
pub(super) fn release(tx: &mut Tx<'_>, form: &Form) {
    if let Some(slug) = &form.slug {
        tx.delete(layout::slug(form.workspace, slug));
    }
}

/// Replaces the slug of `old` by that of `new`.
pub(super) fn replace(tx: &mut Tx<'_>, old: &Form, new: &Form) -> Result<Result<(), Refusal>> {
    if old.slug == new.slug {
        return Ok(Ok(()));
    }
    let given = claim(tx, new)?;
    if given.is_ok() {
        release(tx, old);
    }
    Ok(given)
}
