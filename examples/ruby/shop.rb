# The shop takes five orders and waits until the warehouse has packed them, with the gem pg.
require 'pg'

connection = PG.connect(ENV.fetch('DATABASE_URL'))

5.times do
  # The order and its message are committed together, or neither is.
  connection.transaction do
    handle = connection.exec_params('select parley.begin_dialog($1, $2)', %w[shop warehouse]).getvalue(0, 0)
    order = connection.exec_params('insert into orders (conversation_handle) values ($1) returning order_id', [handle]).getvalue(0, 0)
    connection.exec_params('select parley.send($1, $2, $3)', [handle, 'DEFAULT', order])
  end
end

while connection.exec('select from orders where not is_packed').ntuples.positive?
  # Outside of the transaction: a statement that waits in one keeps dead rows of the server from being removed.
  connection.exec("call parley.wait_for_message('shop_queue', 5000)")
  connection.transaction do
    connection.exec("select * from parley.receive('shop_queue')").each do |message|
      handle = message['conversation_handle']
      if message['message_type_name'] == 'DEFAULT'
        connection.exec_params('update orders set is_packed = true where conversation_handle = $1', [handle])
      end
      connection.exec_params('select parley.end_conversation($1)', [handle])
    end
  end
end
