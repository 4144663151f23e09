-- Why messages wait: what stands in transmission_status. A row is read as in base/definition_errors.sql;
-- parley._p_status(number, situation, arguments...) makes the text of it. Number 0 is for what is over in a moment and
-- is no error: it is tried again and nobody has to do anything.

create view parley._p_status_error as
select e.number, e.situation, e.message, e.cause, e.remedy
from (values
  (0, 'in use', 'The conversation is in use.', null, 'Wait.'),
  (0, 'being opened', 'The conversation is being opened.', null, 'Wait.'),
  (0, 'not compared', 'Both sides of the conversation have to be compared first.', null, 'Wait.'),
  (0, 'fragments missing', 'Fragments of the message are missing.', null, 'Wait.'),
  (9727, 'no binding',
    'the dialog is to be encrypted outside of this server, and nothing says for whom: create a remote service binding '
      || 'for service "%1$s", or begin dialogs with encryption => false.', null,
    'Create a remote service binding, or begin dialogs with encryption => false.'),
  (9727, 'began in clear',
    'the dialog is to be encrypted outside of this server, and its first message was not: it is not known for whom '
      || 'to do it.', null, 'Begin a new dialog, with a remote service binding.'),
  (9728, 'role dropped', 'the role with oid %1$s, which stands for one side of the dialog, was dropped.', null,
    'Bind the remote service to a role that exists.'),
  (9731, 'no certificate',
    'role "%1$s" has no certificate: parley certificate create, or import that of the other side.', null,
    'Create a certificate for the role, or import that of the other side.'),
  (9731, 'unknown signer', 'the certificate %1$s, which has signed the message, is not known here, or revoked.', null,
    'Import the certificate of the sender.'),
  (9733, 'no private key', 'the certificate of role "%1$s" has no private key here.', null,
    'Create the certificate here.'),
  (9733, 'not for here', 'there is no private key here for the certificate %1$s, for which the message is sealed.',
    null, 'Give the sender the certificate that is used here.'),
  (9736, 'not sent', 'The other side has acknowledged what was never sent.', null,
    'The other server breaks the protocol: repair it.'),
  (9750, 'no route', 'There is no route to the service "%1$s".%2$s', null, 'Create a route.'),
  (9750, 'begun elsewhere',
    'The conversation has begun with another database, and now there is no route to its service "%1$s" but here.', null,
    'Create a route to the database where it has begun.'),
  (9767, 'not active', 'no certificate of role "%1$s" is active for begin_dialog.', null, 'Activate one.'),
  (9770, 'route asked',
    'The broker configuration service was asked for a route to the service "%1$s", and has not answered yet.', null,
    'Let it answer, or create a route.'),
  (9770, 'binding asked',
    'The broker configuration service was asked for a remote service binding for the service "%1$s", and has not '
      || 'answered yet.', null, 'Let it answer, or create a remote service binding.'),
  (9772, 'same instance',
    'Another database speaks under the broker instance of this one: it is a copy. In the copy: select '
      || 'parley.new_broker();', null, 'In the copy: select parley.new_broker();'),
  (9772, 'newer speaker',
    'Broker %1$s has spoken in epoch %2$s, term %3$s since: what comes from epoch %4$s, term %5$s is not taken. If two '
      || 'copies of its database are alive, keep one, and in the other: select parley.new_broker();', null,
    'Nothing, or, of two copies, in one: select parley.new_broker();'),
  (9772, 'two copies',
    'Two copies of the database of broker %1$s are alive. Keep one, and in the other: select parley.new_broker();',
    null, 'Keep one, and in the other: select parley.new_broker();'),
  (9779, 'ended there', 'The other side has ended the conversation: the message is held until it is ended here too.',
    null, 'End the conversation.'),
  (9779, 'over', 'The conversation has ended: the message is held until END CONVERSATION.', null,
    'End the conversation.'),
  (9784, 'Error received', 'An Error was received: the message is held until the conversation is ended.', null,
    'End the conversation.'),
  (9784, 'Error made', 'An Error was received or made: the message is held until the conversation is ended.', null,
    'End the conversation.'),
  (9785, 'TRANSPORT',
    'The service name "%1$s" does not begin with tcp://host:port, as the route to it, TRANSPORT, requires.', null,
    'Create a route with an address.'),
  (9791, 'disabled', 'The broker is disabled in this database.', null, 'Enable it: select parley.enable_broker();'),
  (9795, 'not this database', 'The broker instance %1$s is not this database, and there is no route to it.', null,
    'Create a route with this broker_instance.'),
  (9795, 'not the target', 'The broker instance %1$s is not this one.', null,
    'Correct the broker instance of the route or of the dialog.'),
  (9796, 'not in this database',
    'The target service "%1$s" does not exist in this database, and there is no route to it.%2$s', null,
    'Create the service, or a route to it.'),
  (9796, 'not at the target', 'The service "%1$s" does not exist at the target.', null,
    'Create the service there, or correct the route.'),
  (10928, 'full', 'The queue "%1$s" of the target service is full.', null, 'Have its messages received there.'),
  (11219, 'queue disabled', 'The queue "%1$s" of the target service is disabled.', null, 'Enable the queue there.'),
  (28012, 'target disabled', 'The broker is disabled in the target database.', null, 'Enable it there.'),
  (28022, 'key not yet valid', 'the key of the sending broker is not yet valid here.', null,
    'Wait, or compare the clocks.'),
  (28023, 'key expired', 'the key of the sending broker has expired here.', null,
    'Give the sender a new key, and this database its fingerprint.'),
  (28024, 'certificate not yet valid', 'the certificate of role "%1$s" is not yet valid.', null,
    'Wait, or compare the clocks.'),
  (28025, 'certificate expired', 'the certificate of role "%1$s" has expired.', null,
    'Create a new one, and import it on the other side.'),
  (28034, 'sender revoked', 'this broker does not accept the other side any more: the peer was revoked.', null,
    'Ask the operator of the target.'),
  (28047, 'of another peer',
    'the sending broker may not speak for this broker instance, which belongs to another peer. If it forwards, say so '
      || 'there: parley.alter_peer.', null, 'If the peer forwards, say so there: parley.alter_peer.'),
  (28047, 'claimed',
    'the sending broker may not speak for this broker instance: another one has done so first. See '
      || 'parley.peer_brokers there; if it has moved, or is served by a daemon with a key of its own, say so: '
      || 'parley.alter_peer(name, broker_instances => ...).', null,
    'If the broker has moved, say so there: parley.alter_peer(name, broker_instances => ...).'),
  (28047, 'beside',
    'the sending broker may not speak for this broker instance: a database beside this one has done so. If it has '
      || 'moved, say so there: parley.alter_peer(name, broker_instances => ...).', null,
    'If the broker has moved, say so there: parley.alter_peer(name, broker_instances => ...).'),
  (28047, 'too many',
    'the sending broker has spoken for a thousand broker instances already. If it forwards, say so there: '
      || 'parley.alter_peer.', null, 'If the peer forwards, say so there: parley.alter_peer.'),
  (28047, 'epoch ahead',
    'the epoch of broker instance %1$s lies ahead of the time here by more than ten minutes. Compare the clocks: here '
      || 'it is %2$s.', null, 'Compare the clocks.'),
  (28056, 'no CONTROL',
    'role "%1$s", for whose certificate the message is sealed, does not control service "%2$s".', null,
    'Grant CONTROL on the service to the role, or correct the certificate of the binding.'),
  (28066, 'ahead',
    'the first message of the dialog was sealed at %1$s, by a clock that is ahead of the one here: it may be a replay. '
      || 'A sender seals it anew each time; if this stays, compare the clocks, here it is %2$s.', null,
    'Compare the clocks.'),
  (28066, 'too old',
    'the first message of the dialog was sealed at %1$s, longer ago than this server remembers dialogs: it may be a '
      || 'replay. A sender seals it anew each time; if this stays, compare the clocks, here it is %2$s.', null,
    'Compare the clocks.'),
  (28066, 'older state',
    'the first message of the dialog was sealed at %1$s, before this database has gone on from an older state: it may '
      || 'be a replay. A sender seals it anew each time; if this stays, compare the clocks, here it is %2$s.', null,
    'Wait; compare the clocks.')
) as e (number, situation, message, cause, remedy);

comment on view parley._p_status_error is
'Reasons for which messages wait, as transmission_status has them: number, situation and texts.';
