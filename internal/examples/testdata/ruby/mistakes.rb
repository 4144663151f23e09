# What the gem pg sends without an error, and not as it was meant.
require 'pg'

connection = PG.connect(ENV.fetch('DATABASE_URL'))
handle = connection.exec("select parley.begin_dialog('shop', 'warehouse')").getvalue(0, 0)
[
  ['send', %w[a b]],
  ['send', { a: 1 }],
  ['send_json', { a: 1 }],
  ['send_batch', { a: 1 }],
  ['send_binary', '\x6162'],
].each { |call, body| connection.exec_params("select parley.#{call}($1, $2, $3)", [handle, 'DEFAULT', body]) }
