# What the gem pg sends without an error, and not as it was meant.
require 'pg'

connection = PG.connect(ENV.fetch('DATABASE_URL'))
handle = connection.exec("select parley.begin_dialog('shop', 'warehouse')").getvalue(0, 0)
[
  ['send($1, $2, $3)', %w[a b]],
  ['send($1, $2, $3)', { a: 1 }],
  ['send($1, $2, $3::jsonb)', { a: 1 }],
  ['send_batch($1, $2, $3)', { a: 1 }],
  ['send($1, $2, $3::bytea)', '\x6162'],
].each { |call, body| connection.exec_params("select parley.#{call}", [handle, 'DEFAULT', body]) }
