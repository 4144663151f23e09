-- The settings of the other ways in: folders of files, and HTTP. A folder and a listener are of the machines that nodes
-- names, or of all.
--
-- The replay folder believes the envelopes that stand in its files, so that a user who may write there sends as
-- anybody. It is off until an administrator turns it on, and daemons refuse one that others can write to.
-- Source: spec mail 4.1, 4.2, 4.4.

create view parley_mail._p_folder_setting as
select d.kind, d.setting, d.type, d.default_value::jsonb as default_value, d.least, d.largest,
  string_to_array(d.choices, ' ') as choices, d.is_required, d.is_secret, d.remark
from (values
  ('pickup folder', 'enabled', 'boolean', 'true', null, null, null, false, false, ''),
  ('pickup folder', 'path', 'text', null, null, null, null, true, false,
    'full path, on the machine of the daemon, below its --folders'),
  ('pickup folder', 'poll', 'seconds', '5', 1, 3600, null, false, false, 'how often it is polled'),
  ('pickup folder', 'rate', 'integer', '100', 1, 1000000, null, false, false, 'files a minute'),
  ('pickup folder', 'max_header_size', 'bytes', '65536', 1024, 67108864, null, false, false, ''),
  ('pickup folder', 'max_recipients', 'integer', '100', 1, 100000, null, false, false, ''),
  ('pickup folder', 'max_message_size', 'bytes', '37748736', 1024, 2147483647, null, false, false, ''),
  ('pickup folder', 'nodes', 'texts', '[]', null, null, null, false, false,
    'machines, or names of daemons, that take files from it; empty: all'),
  ('replay folder', 'enabled', 'boolean', 'false', null, null, null, false, false,
    'whoever may write into it sends as anybody'),
  ('replay folder', 'path', 'text', null, null, null, null, true, false,
    'full path, on the machine of the daemon, below its --folders, in which nobody else may write'),
  ('replay folder', 'poll', 'seconds', '5', 1, 3600, null, false, false, 'how often it is polled'),
  ('replay folder', 'rate', 'integer', '100', 1, 1000000, null, false, false, 'files a minute'),
  ('replay folder', 'max_message_size', 'bytes', '37748736', 1024, 2147483647, null, false, false, ''),
  ('replay folder', 'nodes', 'texts', '[]', null, null, null, false, false,
    'machines, or names of daemons, that take files from it; empty: all'),
  ('http listener', 'enabled', 'boolean', 'true', null, null, null, false, false, ''),
  ('http listener', 'bindings', 'bindings', '["127.0.0.1:8025"]', null, null, null, false, false,
    'local addresses and ports'),
  ('http listener', 'certificate_file', 'text', null, null, null, null, false, false,
    'PEM, on the machine of the daemon, below its --folders'),
  ('http listener', 'certificate_key_file', 'text', null, null, null, null, false, false,
    'PEM, on the machine of the daemon, below its --folders'),
  ('http listener', 'authentication_without_tls', 'boolean', 'false', null, null, null, false, false,
    'passwords in clear text: loopback and trusted networks only'),
  ('http listener', 'max_message_size', 'bytes', '37748736', 1024, 2147483647, null, false, false, 'of a request'),
  ('http listener', 'max_recipients', 'integer', '200', 1, 100000, null, false, false, ''),
  ('http listener', 'nodes', 'texts', '[]', null, null, null, false, false,
    'machines, or names of daemons, that listen; empty: all')
) as d (kind, setting, type, default_value, least, largest, choices, is_required, is_secret, remark);

comment on view parley_mail._p_folder_setting is
'Settings of the pickup folder, the replay folder and of submission over HTTP.';
