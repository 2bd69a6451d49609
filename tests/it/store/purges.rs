//! What a purge leaves in the tables of PostgreSQL, which only a look past the store shows.

use deadpool_postgres::tokio_postgres::Client;
use forms::id::FormId;
use futures_util::future::join_all;

use super::{Postgres, StoreFixture, done, published_form, purge_form, submit, wait_until};
use crate::harness::postgres::{cluster, connect};

/// More than a purge erases at once.
const ROWS: u32 = 1_100;

/// The tables with rows of forms, except the one of purges, and for each its columns without a default, but for the form, with
/// expressions of `number`.
async fn tables(client: &Client) -> Vec<(String, String, String)> {
    let sql = "SELECT table_name, string_agg(column_name, ', '), string_agg(CASE data_type
                   WHEN 'bytea' THEN 'decode(md5(number::TEXT), ''hex'')' WHEN 'text' THEN '''''' ELSE 'number' END, ', ')
               FROM information_schema.columns
               WHERE table_schema = current_schema() AND is_nullable = 'NO' AND column_default IS NULL
                   AND column_name <> 'form' AND table_name <> 'purges' AND table_name IN
                   (SELECT table_name FROM information_schema.columns WHERE column_name = 'form')
               GROUP BY table_name";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

async fn count(client: &Client, table: &str, form: FormId) -> i64 {
    let sql = format!("SELECT count(*) FROM {table} WHERE form = $1");
    client.query_one(&sql, &[&&form.to_bytes()[..]]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_purge_by_several_servers_erases_the_rows_of_its_form_alone() {
    let Some(cluster) = cluster() else { return };
    let fixture = Postgres(cluster.new_schema().await);
    let (stores, client) = ([fixture.open().await, fixture.open().await], connect(&fixture.0).await);
    let mut forms = Vec::new();
    for number in 1..=4 {
        forms.push(published_form(&*stores[0], number).await);
    }
    let tables = tables(&client).await;
    assert!(tables.len() > 10, "{tables:?}");
    for (number, form) in forms.iter().enumerate() {
        for (table, columns, values) in &tables {
            let sql = format!(
                "INSERT INTO {table} (form, {columns}) SELECT $1, {values}
                 FROM (SELECT generate_series({}, {}) AS number) numbers ON CONFLICT DO NOTHING",
                number as u32 * ROWS,
                (number as u32 + 1) * ROWS
            );
            client.execute(&sql, &[&&form.to_bytes()[..]]).await.unwrap();
            assert!(count(&client, table, *form).await > 0, "{table}");
        }
    }
    let kept = forms.pop().unwrap();
    let purges = forms.iter().enumerate().map(|(number, form)| purge_form(&*stores[number % 2], *form));
    join_all(purges).await.into_iter().for_each(done);
    let left = async || client.query("SELECT form FROM purges", &[]).await.unwrap();
    wait_until(async || left().await.is_empty()).await;
    for (table, ..) in &tables {
        for form in &forms {
            assert_eq!(count(&client, table, *form).await, 0, "{table}");
        }
        assert!(count(&client, table, kept).await > 0, "{table}");
    }
    submit(&*stores[1], kept, "{}", 9).await;
}
