-- The settings of everything that is configured, as data: which there are, their types, defaults and ranges.
--
-- Rows of a kind are the settings that an object of it can have. settings/checked_settings.sql checks values by them;
-- what concerns several settings or objects is checked in settings/checked_objects.sql.
-- Source: spec mail 3.1 to 3.4, 6, 8, 9, 11, 12.

create view parley_mail._p_directory_setting as
select d.kind, d.setting, d.type, d.default_value::jsonb as default_value, d.least, d.largest,
  string_to_array(d.choices, ' ') as choices, d.is_required, d.is_secret, d.remark
from (values
  ('accepted domain', 'type', 'choice', '"AUTHORITATIVE"', null, null, 'AUTHORITATIVE INTERNAL_RELAY EXTERNAL_RELAY',
    false, false, ''),
  ('mailbox store', 'driver', 'choice', '"LMTP"', null, null, 'LMTP MAILDIR', false, false, ''),
  ('mailbox store', 'address', 'text', null, null, null, null, true, false,
    'host:port or unix:path of LMTP; folder of Maildir, with {local} and {domain}; below --folders of the daemon'),
  ('mailbox store', 'max_connections', 'integer', '20', 1, 1000, null, false, false, 'of one node'),
  ('mailbox store', 'max_recipients_per_message', 'integer', '1', 1, 10000, null, false, false,
    'of one transaction by LMTP; stores write Delivered-To only where there is one'),
  ('mailbox store', 'full_is_permanent', 'boolean', 'false', null, null, null, false, false,
    'a full mailbox fails with 5.2.2 at once'),
  ('mailbox store', 'unknown_outcomes', 'choice', '"RETRY"', null, null, 'RETRY HOLD FAIL', false, false,
    'what is done with a message that was sent and not answered: send it again, hold it for an operator, give it up'),
  ('mailbox store', 'duplicate_window', 'integer', '14400', 0, 604800, null, false, false,
    'seconds in which the same message is delivered to a mailbox once; 0: as often as it comes'),
  ('mailbox store', 'retry_policy', 'text', null, null, null, null, false, false,
    'name of a retry policy of parley_store; null: that of mailbox stores'),
  ('mailbox', 'store', 'text', null, null, null, null, false, false,
    'name of a mailbox store; null where all is forwarded'),
  ('mailbox', 'aliases', 'addresses', '[]', null, null, null, false, false, 'further addresses'),
  ('mailbox', 'forward_to', 'addresses', '[]', null, null, null, false, false, ''),
  ('mailbox', 'forwarding', 'choice', '"NONE"', null, null, 'NONE COPY ONLY', false, false,
    'COPY keeps a copy here, ONLY does not'),
  ('mailbox', 'max_receive_size', 'bytes', null, 0, 2147483647, null, false, false, ''),
  ('mailbox', 'internal_senders_only', 'boolean', 'false', null, null, null, false, false, ''),
  ('mailbox', 'accept_from', 'texts', '[]', null, null, null, false, false,
    'addresses or domains whose mail is taken, beside delivery reports; empty: all'),
  ('mailbox', 'reject_from', 'texts', '[]', null, null, null, false, false,
    'addresses or domains whose mail is refused'),
  ('mailbox', 'max_send_size', 'bytes', null, 0, 2147483647, null, false, false, ''),
  ('mailbox', 'max_recipients', 'integer', null, 1, 100000, null, false, false, 'instead of that of the organization'),
  ('mailbox', 'downgrade_high', 'boolean', 'false', null, null, null, false, false,
    'its messages of high priority become normal'),
  ('distribution group', 'members', 'addresses', '[]', null, null, null, false, false, ''),
  ('distribution group', 'aliases', 'addresses', '[]', null, null, null, false, false, ''),
  ('distribution group', 'report_to', 'choice', '"SENDER"', null, null, 'SENDER MANAGER NONE', false, false,
    'who gets DSNs of members'),
  ('distribution group', 'manager', 'address', null, null, null, null, false, false, ''),
  ('distribution group', 'max_receive_size', 'bytes', null, 0, 2147483647, null, false, false, ''),
  ('distribution group', 'internal_senders_only', 'boolean', 'false', null, null, null, false, false, ''),
  ('distribution group', 'accept_from', 'texts', '[]', null, null, null, false, false,
    'addresses or domains whose mail is taken; empty: all'),
  ('distribution group', 'reject_from', 'texts', '[]', null, null, null, false, false,
    'addresses or domains whose mail is refused'),
  ('alias', 'target', 'address', null, null, null, null, true, false, 'address, here or elsewhere'),
  ('service binding', 'pattern', 'text', null, null, null, null, true, false,
    'local@domain, *@domain, local+*@domain or domain'),
  ('service binding', 'service', 'text', null, null, null, null, false, false,
    'service of this database that gets a message'),
  ('service binding', 'from_service', 'text', null, null, null, null, false, false,
    'service in whose name mail transport begins the conversation'),
  ('service binding', 'contract', 'text', '"DEFAULT"', null, null, null, false, false, ''),
  ('service binding', 'message_type', 'text', '"DEFAULT"', null, null, null, false, false, ''),
  ('service binding', 'conversation_key', 'choice', '"NONE"', null, null,
    'NONE PLUS_TAG VERP IN_REPLY_TO THREAD SENDER RECIPIENT', false, false,
    'mail with one key goes to one conversation'),
  ('service binding', 'conversation_age', 'seconds', '2592000', 60, 31536000, null, false, false,
    'after which the next mail with a key begins another conversation'),
  ('service binding', 'table', 'text', null, null, null, null, false, false,
    'table that gets a row instead, as schema.name'),
  ('service binding', 'raw', 'choice', '"INLINE"', null, null, 'INLINE REFERENCE', false, false,
    'whether the payload has the whole message, or a reference to it'),
  ('service binding', 'raw_retention', 'seconds', '604800', 60, 7776000, null, false, false,
    'for how long a message is kept to which there is a reference'),
  ('service binding', 'max_size', 'bytes', '10485760', 1024, 1073741824, null, false, false, ''),
  ('signing key', 'domain', 'domain', null, null, null, null, true, false, 'd='),
  ('signing key', 'selector', 'text', null, null, null, null, true, false, 's='),
  ('signing key', 'algorithm', 'choice', '"RSA-SHA256"', null, null, 'RSA-SHA256 ED25519-SHA256', false, false, ''),
  ('signing key', 'private_key', 'text', null, null, null, null, true, true, 'PEM (PKCS 8)'),
  ('signing key', 'public_key', 'text', null, null, null, null, false, false, 'p= of the DNS record'),
  ('signing key', 'enabled', 'boolean', 'true', null, null, null, false, false, ''),
  ('credential', 'enabled', 'boolean', 'true', null, null, null, false, false, ''),
  ('credential', 'password', 'text', null, null, null, null, false, true, 'kept as a SCRAM verifier only'),
  ('credential', 'verifier', 'text', null, null, null, null, false, true,
    'SCRAM-SHA-256$iterations:salt$stored key:server key'),
  ('credential', 'role', 'text', null, null, null, null, false, false,
    'PostgreSQL role whose rights and password count instead'),
  ('credential', 'allowed_senders', 'texts', '[]', null, null, null, false, false,
    'addresses or domains that it may send as, * for all; empty: accepted domains and the default domain'),
  ('credential', 'message_rate', 'integer', null, 1, 1000000, null, false, false, 'messages a minute')
) as d (kind, setting, type, default_value, least, largest, choices, is_required, is_secret, remark);

comment on view parley_mail._p_directory_setting is
'Settings of domains, addresses, stores, bindings, keys and credentials.';

create view parley_mail.setting_definitions as
select c.kind, c.setting, c.type, c.default_value, c.least, c.largest, c.choices, c.is_required, c.is_secret, c.remark
from parley_mail._p_connector_setting as c
union all
select d.kind, d.setting, d.type, d.default_value, d.least, d.largest, d.choices, d.is_required, d.is_secret, d.remark
from parley_mail._p_directory_setting as d
union all
select f.kind, f.setting, f.type, f.default_value, f.least, f.largest, f.choices, f.is_required, f.is_secret, f.remark
from parley_mail._p_folder_setting as f;

comment on view parley_mail.setting_definitions is
'Each setting of each kind of object of mail transport.
Columns: kind; setting; type, such as seconds or bytes, which also take texts like 5 min or 10 MB; default_value, null:
none; least and largest; choices; is_required; is_secret, shown to nobody but the daemon; remark.';
