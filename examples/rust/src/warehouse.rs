//! The warehouse packs each order that the shop sends. It may be stopped, or killed, at any time.

use postgres::{Client, Error, NoTls, Row, Transaction};
use std::{thread, time::Duration};
use uuid::Uuid;

const END_DIALOG: &str = "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog";
const ERROR: &str = "http://schemas.microsoft.com/SQL/ServiceBroker/Error";

fn main() {
    let url = std::env::var("DATABASE_URL").expect("DATABASE_URL is set");
    loop {
        if let Err(error) = read(&url) {
            eprintln!("the database is away: {error}");
            thread::sleep(Duration::from_secs(1));
        }
    }
}

fn read(url: &str) -> Result<(), Error> {
    let mut client = Client::connect(url, NoTls)?;
    println!("reading");
    let mut top = 10;
    loop {
        let mut current = None;
        let Err(error) = receive(&mut client, top, &mut current) else {
            top = 10;
            continue;
        };
        let (Some(handle), Some(refusal)) = (current, error.as_db_error()) else { return Err(error) };
        let (state, text) = (refusal.code().code(), refusal.message());
        eprintln!("{handle}: {text} ({state})");
        // In a transaction of its own: a message that keeps failing is set aside, and this says why.
        client.execute("select parley.record_failure($1, $2, $3)", &[&handle, &state, &text])?;
        // One at a time: what stands in front of it is done, and it alone fails the next time.
        top = 1;
    }
}

/// Receives and handles in one transaction: what fails, or is killed, is received again.
fn receive(client: &mut Client, top: i32, current: &mut Option<Uuid>) -> Result<(), Error> {
    let mut transaction = client.transaction()?;
    let messages = transaction.query(
        "select conversation_handle, message_type_name, parley.body_text(message_body) as body
         from parley.receive('warehouse_queue', top => $1) order by queuing_order",
        &[&top],
    )?;
    for message in messages {
        *current = Some(message.get("conversation_handle"));
        handle(&mut transaction, &message)?;
    }
    transaction.commit()?;
    if current.is_none() {
        // Outside of the transaction: a statement that waits in one keeps dead rows of the server from being removed.
        client.batch_execute("call parley.wait_for_message('warehouse_queue', 5000)")?;
    }
    Ok(())
}

fn handle(transaction: &mut Transaction, message: &Row) -> Result<(), Error> {
    let handle: Uuid = message.get("conversation_handle");
    if [END_DIALOG, ERROR].contains(&message.get("message_type_name")) {
        transaction.execute("select parley.end_conversation($1)", &[&handle])?;
        return Ok(());
    }
    let order: &str = message.get("body");
    transaction.execute("insert into parcels (order_id) values ($1::text::integer)", &[&order])?;
    transaction.execute("select parley.send($1, $2, $3)", &[&handle, &"DEFAULT", &order])?;
    Ok(())
}
