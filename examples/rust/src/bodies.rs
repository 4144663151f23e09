//! Sends one body of each kind: which call takes which value.

use postgres::types::ToSql;
use postgres::{Client, Error, NoTls, Transaction};
use serde_json::json;
use uuid::Uuid;

fn main() -> Result<(), Error> {
    let url = std::env::var("DATABASE_URL").expect("DATABASE_URL is set");
    let mut client = Client::connect(&url, NoTls)?;
    let mut transaction = client.transaction()?;
    let handle: Uuid = transaction.query_one("select parley.begin_dialog($1, $2)", &[&"shop", &"warehouse"])?.get(0);
    send(&mut transaction, "send($1, $2, $3)", &handle, &"chair")?;
    send(&mut transaction, "send($1, $2, $3::bytea)", &handle, &vec![0x00_u8, 0xff])?;
    send(&mut transaction, "send($1, $2, $3::jsonb)", &handle, &json!({"seats": [1, 2]}))?;
    send(&mut transaction, "send($1, $2, $3::jsonb)", &handle, &json!([1, 2]))?;
    send(&mut transaction, "send_batch($1, $2, $3)", &handle, &vec!["a", "b"])?;
    send(&mut transaction, "send_batch_binary($1, $2, $3)", &handle, &vec![vec![0x00_u8], vec![0xff]])?;
    send(&mut transaction, "send_batch($1, $2, $3)", &handle, &vec![json!({"a": 1}).to_string(), json!([2]).to_string()])?;
    transaction.commit()
}

fn send(transaction: &mut Transaction, call: &str, handle: &Uuid, body: &(dyn ToSql + Sync)) -> Result<(), Error> {
    transaction.execute(&format!("select parley.{call}"), &[handle, &"DEFAULT", body])?;
    Ok(())
}
