-- The sender of a message from another broker, and in whose name he may speak.
--
-- An identity is the proof that the daemon has seen: "certificate:" and the fingerprint of the signer of a secured
-- dialog, "peer:" and the fingerprint of the key at the other end of the link, with " named " and a name where an
-- authority vouches for it, "" for nobody. Between databases of one server it is "role:", the oid of the sender's
-- database, the oid of the owner of its schema parley, and the owner of the sending service, with blanks between. Both
-- owners can say there that a service is anybody's: so its owner is believed when both of them could act as him. A
-- message that was signed and has come over a link has both, "certificate:... over peer:...".
-- Here it becomes a role, whose grants decide (spec 7.1); nothing else about a sender is believed. A message from a
-- peer that is revoked or expired is not taken at all: _p_refusal_of_identity says so before anything is judged. An
-- expired key must not end conversations; what it sent waits at the sender until the key is changed.
--
-- In whose name a sender may speak: the word of trust_peer, alter_peer or a pairing counts first. For a broker of which
-- none of these has spoken, the first peer that speaks in its name is recorded (_p_peer_broker). From then on no other
-- peer may write into its conversations or shut it out with a newer epoch. A peer may have any number of
-- brokers, as its daemon serves any number of databases. Forwarders speak for all, and are recorded for none. A
-- broker that is let in by a certificate authority alone is recorded under the name in its certificate
-- ("peer:FINGERPRINT named NAME").

-- The newest epoch and term that each broker has sent.
create table parley._p_known_broker (
  broker_instance uuid primary key,
  epoch bigint not null,
  term bigint not null,
  token uuid not null,
  is_beside boolean not null default false
);

comment on table parley._p_known_broker is
'Brokers that have sent something here: the newest epoch, in it the newest term of the daemon that
speaks for them, and its token.';
comment on column parley._p_known_broker.is_beside is
'Whether a database of the same daemon named it first, over no link.';

create function parley._p_role_of_identity(identity text) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kind text := split_part(identity, ':', 1);
  v_value text := substr(identity, length(split_part(identity, ':', 1)) + 2);
  v_role oid;
begin
  case v_kind
    when 'peer' then
      select p.role::oid into v_role
      from parley._p_peer_certificate as c
      join parley._p_peer as p using (peer_id)
      where c.fingerprint = split_part(v_value, ' ', 1)
        and p.revoked_at is null
        and (c.not_before is null or c.not_before <= clock_timestamp())
        and (c.not_after is null or c.not_after > clock_timestamp());
    when 'role' then
      select r.oid into v_role
      from pg_database as d
      join pg_roles as k on k.oid::text = split_part(v_value, ' ', 2)
      join pg_roles as r
        on r.rolname = substr(v_value, length(split_part(v_value, ' ', 1)) + length(split_part(v_value, ' ', 2)) + 3)
      where d.oid::text = split_part(v_value, ' ', 1)
        and parley._p_may_act_as(d.datdba, r.oid)
        and parley._p_may_act_as(k.oid, r.oid);
    when 'certificate' then
      v_role := parley._p_role_of_certificate(split_part(v_value, ' ', 1));
    else
      v_role := null;
  end case;
  -- The role may have been dropped since.
  return (select r.oid from pg_roles as r where r.oid = v_role);
end
$$;

comment on function parley._p_role_of_identity(text) is
'Gives the role that a sender acts as, null for nobody: unknown, revoked, expired, mapped to no role, or to one that is
gone. Then only what is granted to PUBLIC counts.
Arguments: identity, certificate:FINGERPRINT of who has signed a dialog, peer:FINGERPRINT or
role:NAME, as the daemon has it proven.
Source: spec 7.1.';

create function parley._p_refusal_of_identity(identity text, speaker uuid) returns parley._p_error
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fingerprint text := substring(identity from '^(?:certificate:[0-9a-f]+ over )?peer:([^ ]*)');
  v_name text := substring(identity from ' named (.*)$');
  v_key record;
  v_pin parley._p_peer_broker;
begin
  if v_fingerprint is null then
    return null;
  end if;
  select p.peer_id, p.name, p.revoked_at, p.is_forwarder, c.not_before, c.not_after into v_key
  from parley._p_peer_certificate as c
  join parley._p_peer as p using (peer_id)
  where c.fingerprint = v_fingerprint;
  if v_key.revoked_at is not null then
    return parley._p_error_of(28034, 'sender revoked');
  elsif v_key.not_before > clock_timestamp() then
    return parley._p_error_of(28022, 'key not yet valid');
  elsif v_key.not_after <= clock_timestamp() then
    return parley._p_error_of(28023, 'key expired');
  elsif v_key.is_forwarder then
    return null;
  end if;
  perform from parley._p_peer as own where own.peer_id = v_key.peer_id and array[speaker] <@ own.broker_instances;
  if found then
    return null;
  end if;
  perform from parley._p_peer as p where array[speaker] <@ p.broker_instances and p.revoked_at is null;
  if found then
    return parley._p_error_of(28047, 'of another peer');
  end if;
  select * into v_pin from parley._p_peer_broker as b where b.broker_instance = speaker;
  if found then
    if v_pin.peer_id = v_key.peer_id or v_pin.fingerprint = v_fingerprint or v_pin.authority_name = v_name then
      return null;
    end if;
    return parley._p_error_of(28047, 'claimed');
  end if;
  perform from parley._p_known_broker as k where k.broker_instance = speaker and k.is_beside;
  if found then
    return parley._p_error_of(28047, 'beside');
  end if;
  return null;
end
$$;

comment on function parley._p_refusal_of_identity(text, uuid) is
'Explains why nothing is taken from a sender just now, with the number of the underlying message; null when it is.
The sender keeps its messages.
Arguments: identity, as _p_role_of_identity takes it; speaker, the broker instance in whose name it speaks.
Source: spec 6.12, 7.2.';

create function parley._p_claim_broker(identity text, speaker uuid) returns parley._p_error
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fingerprint text := substring(identity from '^(?:certificate:[0-9a-f]+ over )?peer:([^ ]*)');
  v_name text := substring(identity from ' named (.*)$');
  v_peer parley._p_peer;
  v_count bigint;
begin
  select p.* into v_peer
  from parley._p_peer_certificate as c
  join parley._p_peer as p using (peer_id)
  where c.fingerprint = v_fingerprint;
  if v_fingerprint is null or v_peer.is_forwarder or array[speaker] <@ v_peer.broker_instances then
    return null;
  end if;
  v_name := case when v_peer.peer_id is null then v_name end;
  v_fingerprint := case when v_peer.peer_id is null and v_name is null then v_fingerprint end;
  select count(*) into v_count
  from parley._p_peer_broker as b
  where b.peer_id = v_peer.peer_id or b.authority_name = v_name or b.fingerprint = v_fingerprint;
  if v_count >= 1000 then
    return parley._p_error_of(28047, 'too many');
  end if;
  insert into parley._p_peer_broker (broker_instance, peer_id, authority_name, fingerprint)
  values (speaker, v_peer.peer_id, v_name, v_fingerprint)
  on conflict do nothing;
  -- Another session may have been faster.
  return parley._p_refusal_of_identity(identity, speaker);
end
$$;

comment on function parley._p_claim_broker(text, uuid) is
'Records that a sender is the first who speaks in the name of a broker that is nobody''s yet; a thousand for each
sender. Gives why it may not, when another sender was first.
Arguments: identity, which _p_refusal_of_identity does not refuse; speaker.
Source: spec 7.2.';

create function parley._p_settle_brokers(peer integer, instances uuid[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A key that another peer has claimed to be the newest counts no more.
  delete from parley._p_known_broker as k
  using parley._p_peer_broker as b
  where k.broker_instance = b.broker_instance
    and b.broker_instance = any (instances)
    and b.peer_id is distinct from peer;
  delete from parley._p_peer_broker as b where b.broker_instance = any (instances);
  update parley._p_known_broker as k set is_beside = false where k.broker_instance = any (instances) and k.is_beside;
end
$$;

comment on function parley._p_settle_brokers(integer, uuid[]) is
'Forgets who has spoken first in the name of brokers of which an operator or a pairing says now whose they are.
Arguments: peer, whose; instances.';

create function parley._p_refusal_of_identities(identities text[], speaker uuid) returns parley._p_error
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_identity text;
  v_refusal parley._p_error;
begin
  -- All of a batch has come over one link; what does not come over links costs nothing here.
  if array_to_string(identities, ' ') !~ 'peer:' then
    return null;
  end if;
  for v_identity in select distinct u.identity from unnest(identities) as u (identity) loop
    v_refusal := parley._p_refusal_of_identity(v_identity, speaker);
    if v_refusal is null and not exists (select from parley._p_peer_broker as b where b.broker_instance = speaker) then
      v_refusal := parley._p_claim_broker(v_identity, speaker);
    end if;
    if v_refusal is not null then
      return v_refusal;
    end if;
  end loop;
  return null;
end
$$;

comment on function parley._p_refusal_of_identities(text[], uuid) is
'Explains why nothing is taken of a batch just now; null when it is, and records who is the first to speak in the name
of a broker. It has to be asked before the speaker is believed in anything.
Arguments: identities of the runs; speaker, the broker instance in whose name they come.
Source: spec 6.12, 7.2.';

create function parley._p_refusal_of_speaker(identities text[], speaker uuid, epoch bigint) returns parley._p_error
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if epoch > extract(epoch from clock_timestamp() + interval '10 minutes') * 1000000 then
    return parley._p_error_of(
      28047, 'epoch ahead', speaker::text, to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')
    );
  end if;
  return parley._p_refusal_of_identities(identities, speaker);
end
$$;

comment on function parley._p_refusal_of_speaker(text[], uuid, bigint) is
'Explains why nothing is taken of a speaker just now: for who sends it, or for its epoch, which is a time and
cannot be one to come; null when it is. So nobody, not even a forwarder, can shut a broker out with an epoch that
this one will not have for long.
Arguments: identities, of the runs; speaker; epoch, in microseconds since 1970, as transport/epoch.sql makes it.
Source: spec 6.12, 7.2.';

create function parley._p_succeed_peer_key(
  predecessor text, fingerprint text, certificate bytea, not_before timestamptz, not_after timestamptz
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_peer_id integer;
begin
  select p.peer_id into v_peer_id
  from parley._p_peer_certificate as c
  join parley._p_peer as p using (peer_id)
  where c.fingerprint = predecessor
    and p.revoked_at is null
    and (c.not_before is null or c.not_before <= clock_timestamp())
    and (c.not_after is null or c.not_after > clock_timestamp())
  for update of p;
  if v_peer_id is null
    or exists (
      select from parley._p_peer_certificate as c
      where c.fingerprint = _p_succeed_peer_key.fingerprint and c.peer_id <> v_peer_id
    ) then
    return false;
  end if;
  insert into parley._p_peer_certificate (fingerprint, peer_id, certificate, not_before, not_after, succeeds)
  values (fingerprint, v_peer_id, certificate, not_before, not_after, predecessor)
  on conflict do nothing;
  if found then
    -- A key that has long expired is of no use to anybody.
    delete from parley._p_peer_certificate as c
    where c.peer_id = v_peer_id and c.not_after < clock_timestamp() - interval '90 days';
    update parley._p_peer as p set modify_date = clock_timestamp() where p.peer_id = v_peer_id;
    perform parley._p_notify_peer_change();
  end if;
  return true;
end
$$;

comment on function parley._p_succeed_peer_key(text, text, bytea, timestamptz, timestamptz) is
'Adds a key to the peer whose key has signed it; both are trusted then. The daemon has checked the signature. False when
the predecessor is not trusted just now, or the key is another peer''s.
Arguments: predecessor and fingerprint, 64 hexadecimal digits each; certificate of the new key,
with its not_before and not_after.
Source: spec 7.5.';
