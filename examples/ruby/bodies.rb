# Sends one body of each kind: which call takes which value.
require 'json'
require 'pg'

TEXTS = PG::TextEncoder::Array.new
BYTES = PG::TextEncoder::Array.new(elements_type: PG::TextEncoder::Bytea.new)

connection = PG.connect(ENV.fetch('DATABASE_URL'))
connection.transaction do
  handle = connection.exec_params('select parley.begin_dialog($1, $2)', %w[shop warehouse]).getvalue(0, 0)
  send = lambda { |call, body| connection.exec_params("select parley.#{call}", [handle, 'DEFAULT', body]) }

  send.call('send($1, $2, $3)', 'chair')
  send.call('send($1, $2, $3::bytea)', { value: "\x00\xff".b, format: 1 })
  # A Hash that is given as it is means a value and its format, and this one has no value.
  send.call('send($1, $2, $3::jsonb)', JSON.generate({ seats: [1, 2] }))
  send.call('send($1, $2, $3::jsonb)', JSON.generate([1, 2]))
  send.call('send_batch($1, $2, $3)', TEXTS.encode(%w[a b]))
  send.call('send_batch_binary($1, $2, $3)', BYTES.encode(["\x00".b, "\xff".b]))
  send.call('send_batch($1, $2, $3)', TEXTS.encode([JSON.generate({ a: 1 }), JSON.generate([2])]))
end
