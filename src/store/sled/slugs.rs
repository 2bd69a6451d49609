//! Slugs in the embedded store: one row for each slug of a form outside the trash, which keeps slugs unique.

use super::engine::tx::Tx;
use super::{Stop, layout};
use crate::domain::form::Form;
use crate::domain::form::admission::Refusal;
use crate::id::FormId;

/// Reserves the slug of `form`, if it has one. Refused, with no effect, if another form has it.
pub(super) fn claim<T>(tx: &mut Tx<'_>, form: &Form) -> Result<(), Stop<T>> {
    let Some(slug) = &form.slug else { return Ok(()) };
    let key = layout::slug(form.workspace, slug);
    if let Some(holder) = tx.get(&key)? {
        return Err(Refusal::slug_taken(slug, layout::last(&holder, FormId::from_bytes)?).into());
    }
    tx.put(key, form.id.to_bytes().to_vec());
    Ok(())
}

/// Releases the slug of `form`, if it has one.
pub(super) fn release(tx: &mut Tx<'_>, form: &Form) {
    if let Some(slug) = &form.slug {
        tx.delete(layout::slug(form.workspace, slug));
    }
}

/// Replaces the slug of `old` by that of `new`.
pub(super) fn replace<T>(tx: &mut Tx<'_>, old: &Form, new: &Form) -> Result<(), Stop<T>> {
    if old.slug != new.slug {
        claim(tx, new)?;
        release(tx, old);
    }
    Ok(())
}
