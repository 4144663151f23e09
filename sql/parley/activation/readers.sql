-- Readers that the leader starts: each asks at its start what it may run as.

create function parley._p_require_reader(queue_id integer) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_refusal text := parley._p_reader_refusal(queue_id);
begin
  if v_refusal is not null then
    raise exception using
      errcode = '42501',
      message = v_refusal,
      detail = 'The rights that count are those of now, not those of when it was set.',
      hint = 'Let a role that may set the activation again, or grant the membership.';
  end if;
  return true;
end
$$;

comment on function parley._p_require_reader(integer) is
'Refuses to start a reader of a queue when who said what reads it may not, or no longer.
Errors: SQLSTATE 42501.';

create function parley._p_may_begin_reader(
  term bigint, queue_id integer, role text, procedure_call text, milliseconds integer
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_left_ms bigint;
begin
  if not parley._p_holds_term(term) then
    return false;
  end if;
  v_left_ms := (
    pg_sequence_last_value('parley._p_leader_lease') - extract(epoch from clock_timestamp()) * 1000000
  ) / 1000;
  if v_left_ms is null or v_left_ms < milliseconds then
    return false;
  end if;
  found := parley._p_require_reader(queue_id);
  if exists (
    select from parley._p_queue as q where q.queue_id = _p_may_begin_reader.queue_id and q.readers_paused_at is not null
  ) then
    return false;
  end if;
  return role is null or exists (
    select
    from parley._p_queue as q
    join pg_roles as r on r.oid = parley._p_execute_as(q.execute_as, q.owner)
    where q.queue_id = _p_may_begin_reader.queue_id and q.is_activation_enabled and r.rolname = role
      -- The name of a procedure that the queue had before may be anybody's.
      and parley._p_procedure_call(q.activation_procedure) = _p_may_begin_reader.procedure_call
  );
end
$$;

comment on function parley._p_may_begin_reader(bigint, integer, text, text, integer) is
'Reports whether the daemon that has a term may start a reader of a queue now: its lease lasts, and
the queue still says that role and that procedure.
Arguments: term, as _p_lead gave it; queue_id; role that a procedure runs as, or null for another kind of reader;
procedure_call, what will be called then, as _p_activated_queues gave it; milliseconds that the lease must last.
Errors: SQLSTATE 42501 when who said what reads may not, or no longer.';

create function parley._p_begin_reader(
  term bigint, queue_id integer, role text, procedure_call text, is_direct boolean
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_left_ms bigint;
begin
  if not parley._p_may_begin_reader(term, queue_id, role, procedure_call, 1000) then
    return false;
  end if;
  if is_direct then
    -- The call has to come while no other daemon can lead: a daemon that is paused in between finds
    -- that its session has ended.
    v_left_ms := (
      pg_sequence_last_value('parley._p_leader_lease') - extract(epoch from clock_timestamp()) * 1000000
    ) / 1000;
    perform set_config('idle_session_timeout', greatest(1, least(v_left_ms - 500, 2000))::text, false);
    perform set_config('parley.reader', 'on', false);
    perform set_config('role', case when role = session_user then 'none' else role end, false);
  end if;
  return true;
end
$$;

comment on function parley._p_begin_reader(bigint, integer, text, text, boolean) is
'Reports whether the daemon that has a term may start a reader in this session now, which is then ended by
the server unless a statement comes before the lease can be over, two seconds at most. Neither the daemon''s
clock nor its being awake matters.
Arguments: term, as _p_lead gave it; queue_id; role that the reader runs as; procedure_call, what it calls; is_direct,
false behind a pooler, where nothing can be set for a session.
Errors: SQLSTATE 42501 when who said what reads may not, or no longer.';
