# The warehouse packs each order that the shop sends, with the gem pg. It may be stopped, or killed, at any time.
require 'pg'

ENDS = %w[EndDialog Error].map { |name| "http://schemas.microsoft.com/SQL/ServiceBroker/#{name}" }

$stdout.sync = true
stopped = false
trap('TERM') { stopped = true }

def handle(connection, message)
  handle = message['conversation_handle']
  if ENDS.include?(message['message_type_name'])
    connection.exec_params('select parley.end_conversation($1)', [handle])
  else
    connection.exec_params('insert into parcels (order_id) values ($1)', [message['body']])
    connection.exec_params('select parley.send($1, $2, $3)', [handle, 'DEFAULT', message['body']])
  end
end

# Receives and handles in one transaction: what fails, or is killed, is received again. Gives how many to take next.
def receive(connection, top)
  current = nil
  connection.transaction do
    connection.exec_params(<<~SQL, [top]).each { |message| handle(connection, current = message) }
      select conversation_handle, message_type_name, parley.body_text(message_body) as body
      from parley.receive('warehouse_queue', top => $1) order by queuing_order
    SQL
  end
  # Outside of the transaction: a statement that waits in one keeps dead rows of the server from being removed.
  connection.exec("call parley.wait_for_message('warehouse_queue', 5000)") if current.nil?
  10
rescue PG::Error => e
  raise if e.is_a?(PG::ConnectionBad) || current.nil?

  state = e.result&.error_field(PG::PG_DIAG_SQLSTATE)
  text = e.result&.error_field(PG::PG_DIAG_MESSAGE_PRIMARY) || e.message
  warn "#{current['conversation_handle']}: #{text} (#{state})"
  # In a transaction of its own: a message that keeps failing is set aside, and this says why.
  connection.exec_params('select parley.record_failure($1, $2, $3)', [current['conversation_handle'], state, text])
  # One at a time: what stands in front of it is done, and it alone fails the next time.
  1
end

until stopped
  begin
    connection = PG.connect(ENV.fetch('DATABASE_URL'))
    puts 'reading'
    top = 10
    top = receive(connection, top) until stopped
    connection.close
  rescue PG::Error => e
    warn "the database is away: #{e.message}"
    sleep 1
  end
end
