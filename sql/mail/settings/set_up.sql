-- The objects that mail has in the broker and in the store: made with the first change of its configuration, so that a
-- database without mail shows none of them among its queues and services.
--
-- parley_mail_submission   messages that wait to be categorized; what fails twice is set aside (queues/poison.sql)
-- parley_mail/Status       the service that sends status events (base/status_events.sql)
-- parley_mail_status       its queue, which maintenance reads (reports/status_queue.sql)
-- mail, mail_service       the systems of the store (messages/recipients.sql)

create function parley_mail._p_set_up() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley_mail._p_organization as o set is_set_up = true where not o.is_set_up;
  if not found then
    return false;
  end if;
  perform parley.create_queue(
    'parley_mail_submission', kind => 'simple', poison_rollbacks => 2, caller => parley.current_caller()
  );
  perform parley.create_message_type('parley_mail/Status', caller => parley.current_caller());
  perform parley.create_contract(
    'parley_mail/Status', array['parley_mail/Status'], sent_by => 'INITIATOR', caller => parley.current_caller()
  );
  -- Its reader is maintenance, which may fail for reasons of its own (reports/status_queue.sql).
  perform parley.create_queue(
    'parley_mail_status', poison_message_handling => false, caller => parley.current_caller()
  );
  perform parley.create_service(
    'parley_mail/Status', 'parley_mail_status', array['parley_mail/Status'], caller => parley.current_caller()
  );
  perform parley_store.add_system('mail');
  perform parley_store.add_system('mail_service');
  -- That a message is deferred is not the failure of its next hop: it has intervals of its own. The first is short, for
  -- hosts that refuse whom they do not know yet.
  perform parley_store.set_retry_policy(
    'mail_message', 'STEPS', '15 minutes', '{1, 1}', '{1 minute, 5 minutes}', jitter => 0.2, expires_after => '90 days'
  );
  perform parley_store.set_retry_policy(
    'mail_store', 'STEPS', '5 minutes', jitter => 0.2, expires_after => '90 days', notice_after => '30 days'
  );
  perform parley_store.set_lane('mail', 'POISON/-/-', is_permanent => true);
  perform parley_store.set_lane('mail', 'UNREACHABLE/-/-', is_permanent => true);
  perform parley_store.suspend_lane('mail', 'POISON/-/-', reason => 'permanent');
  perform parley_store.suspend_lane('mail', 'UNREACHABLE/-/-', reason => 'permanent');
  perform parley_mail._p_seed_pressure();
  return true;
end
$$;

comment on function parley_mail._p_set_up() is
'Makes what mail has in the broker and in the store, once; reports whether it did. Two sessions wait for each other.';
