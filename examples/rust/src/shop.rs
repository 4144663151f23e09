//! The shop takes five orders and waits until the warehouse has packed them.

use postgres::{Client, Error, NoTls};
use uuid::Uuid;

fn main() -> Result<(), Error> {
    let url = std::env::var("DATABASE_URL").expect("DATABASE_URL is set");
    let mut client = Client::connect(&url, NoTls)?;
    for _ in 0..5 {
        place(&mut client)?;
    }
    while !client.query("select from orders where not is_packed", &[])?.is_empty() {
        collect(&mut client)?;
    }
    Ok(())
}

/// The order and its message are committed together, or neither is.
fn place(client: &mut Client) -> Result<(), Error> {
    let mut transaction = client.transaction()?;
    let handle: Uuid = transaction.query_one("select parley.begin_dialog($1, $2)", &[&"shop", &"warehouse"])?.get(0);
    let order: i32 = transaction
        .query_one("insert into orders (conversation_handle) values ($1) returning order_id", &[&handle])?
        .get(0);
    transaction.execute("select parley.send($1, $2, $3)", &[&handle, &"DEFAULT", &order.to_string()])?;
    transaction.commit()
}

fn collect(client: &mut Client) -> Result<(), Error> {
    // Outside of the transaction: a statement that waits in one keeps dead rows of the server from being removed.
    client.batch_execute("call parley.wait_for_message('shop_queue', 5000)")?;
    let mut transaction = client.transaction()?;
    for message in transaction.query("select * from parley.receive('shop_queue')", &[])? {
        let handle: Uuid = message.get("conversation_handle");
        if message.get::<_, &str>("message_type_name") == "DEFAULT" {
            transaction.execute("update orders set is_packed = true where conversation_handle = $1", &[&handle])?;
        }
        transaction.execute("select parley.end_conversation($1)", &[&handle])?;
    }
    transaction.commit()
}
